/** Reasoning tokens per effort: different enough to tell efforts apart, few enough for short tests. */
export const tokensByEffort: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 8,
  low: 16,
  medium: 64,
  high: 128,
  xhigh: 256,
  max: 512,
}
