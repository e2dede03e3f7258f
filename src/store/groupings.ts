/** What usage can be summed by. Apart from the sums, so that the command line knows it without loading them. */
export const groupings = ['hour', 'day', 'model', 'key', 'account', 'vendor', 'capability'] as const
export type GroupBy = (typeof groupings)[number]
