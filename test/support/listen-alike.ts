import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

type Place = readonly [server: Server, address: string]

/** Two servers on one port of two addresses. One that is free at the first may be somebody's at the second: then another is. */
export async function listenAlike([first, address]: Place, [second, otherAddress]: Place): Promise<void> {
  for (;;) {
    await once(first.listen(0, address), 'listening')
    const { port } = first.address() as AddressInfo
    try {
      // Throws what is told as an error.
      await once(second.listen(port, otherAddress), 'listening')
      return
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw thrown
      await once(first.close(), 'close')
    }
  }
}
