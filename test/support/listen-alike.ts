import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

type Place = readonly [server: Server, address: string]

/**
 * Makes two servers listen on the same port of two addresses. A port that is free at the first may be taken at the
 * second, and then another is tried.
 */
export async function listenAlike([first, address]: Place, [second, otherAddress]: Place): Promise<void> {
  for (;;) {
    await once(first.listen(0, address), 'listening')
    const { port } = first.address() as AddressInfo
    try {
      // Throws what the server emits as an error.
      await once(second.listen(port, otherAddress), 'listening')
      return
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw thrown
      await once(first.close(), 'close')
    }
  }
}
