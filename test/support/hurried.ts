import type { TestGateway } from './gateway.ts'
import type { movableClock } from './movable-clock.ts'

/**
 * While something is awaited, a gateway's time passes ten times as quickly, and it looks after its tasks without a rest.
 * Simulators keep the world's time.
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
