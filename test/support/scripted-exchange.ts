import { Pump } from '../../src/base/pour.ts'
import { TooLong, type Exchange } from '../../src/upstream/transport.ts'

/** A vendor's response that comes in these pieces, or breaks at a piece that is an error. */
export function scriptedExchange(
  status: number,
  pieces: readonly (string | Error)[],
  contentType: string | null = null,
): Exchange {
  const left = [...pieces]
  const read = async (): Promise<Uint8Array | undefined> => {
    const [piece] = left
    if (piece instanceof Error) throw piece // and throws it again at every further read
    left.shift()
    return piece === undefined ? undefined : Buffer.from(piece)
  }
  const pump = new Pump(read)
  return {
    status,
    header: (name) => (name === 'content-type' ? contentType : null),
    pour: (outlet) => pump.pour(outlet),
    pause: () => pump.pause(),
    read,
    async peek() {
      const first = await read()
      if (first !== undefined) left.unshift(Buffer.from(first).toString())
      return first
    },
    async readAll(bytesMax) {
      const parts: Uint8Array[] = []
      for (let part = await read(); part !== undefined; part = await read()) parts.push(part)
      const body = Buffer.concat(parts)
      if (body.length > bytesMax) throw new TooLong(bytesMax)
      return body
    },
    finish() {},
    outliveClient() {},
    abort() {},
  }
}
