/** What was thrown. Not `expect().rejects`, because Bun does not serve sockets while it waits for that. */
export function thrownBy(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  )
}
