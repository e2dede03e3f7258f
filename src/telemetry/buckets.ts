/**
 * A histogram of milliseconds as plain numbers: each count is of values up to its bound and above the previous one; the
 * last is of values above all bounds.
 */
export class Buckets {
  readonly bounds: readonly number[]
  readonly counts: number[]
  sum = 0
  count = 0

  /** `bounds` ascend. */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  add(value: number): void {
    const { bounds, counts } = this
    let i = 0
    while (i < bounds.length && value > (bounds[i] ?? 0)) i++
    counts[i] = (counts[i] ?? 0) + 1
    this.sum += value
    this.count++
  }
}
