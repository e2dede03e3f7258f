export type Progress = {
  readonly label: string
  readonly state: string
  readonly elapsedMs: number
  /** How long such work took before, because vendors do not report their progress. */
  readonly usualMs: number
  readonly isOver: boolean
}

// With it, a task's id of 36 characters still fits into 80 columns for the first hour.
const barCells = 18
const widthMin = 40

/** One line that can be written over itself; never longer than the terminal is wide. */
export function bar({ label, state, elapsedMs, usualMs, isOver }: Progress, columns = 80): string {
  const share = isOver ? 1 : estimate(elapsedMs / Math.max(1, usualMs))
  const full = Math.floor(share * barCells)
  const cells = `${'█'.repeat(full)}${'░'.repeat(barCells - full)}`
  const line = `${cells} ${String(Math.round(share * 100)).padStart(3)}%  ${clock(elapsedMs)}  ${state}  ${label}`
  const width = Math.max(widthMin, columns) - 1
  return line.slice(0, width).padEnd(width)
}

const unfinishedMax = 0.99

/** Linear up to 90% at the usual time; after that it approaches 100% without reaching it. */
function estimate(times: number): number {
  return Math.min(unfinishedMax, times <= 1 ? times * 0.9 : 1 - 0.1 / times)
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
