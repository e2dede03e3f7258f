/** What was thrown; for `expect().rejects` Bun waits in a way in which sockets are not heard. */
export function thrownBy(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  )
}
