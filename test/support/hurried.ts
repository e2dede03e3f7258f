import type { TestGateway } from './gateway.ts'
import type { movableClock } from './movable-clock.ts'

/**
 * While a promise is pending, makes a gateway's time pass ten times as fast and its tasks be polled without a pause.
 * Simulators keep real time.
 */
export async function hurried<T>(
  { tasks }: Pick<TestGateway, 'tasks'>,
  clock: ReturnType<typeof movableClock>,
  awaited: Promise<T>,
): Promise<T> {
  const state = { isOver: false }
  const end = () => {
    state.isOver = true
  }
  awaited.then(end, end)
  while (!state.isOver) {
    clock.advance(100)
    await tasks.turn()
    await tasks.idle()
    await Bun.sleep(10)
  }
  return awaited
}
