import { TooLong, type Exchange } from './transport.ts'

/** Servers repeat the value that they refuse, which may be most of the request. More would stall the loop. */
export const refusalBytesMax = 1024 * 1024

// In the common protocol, in which every vendor's table finds the message.
const longRefusal = Buffer.from(
  JSON.stringify({
    error: {
      message: "The model's vendor refused the request, in more words than are passed on.",
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
  }),
)

/**
 * The body of a refusal. Nothing but the request itself makes one longer than is read, so that its status says whose
 * fault it is, and our own words stand for it: a client's long text must not count as a failure of the channel.
 */
export async function readRefusalBody(exchange: Pick<Exchange, 'readAll'>): Promise<Uint8Array> {
  return exchange.readAll(refusalBytesMax).catch((thrown: unknown) => {
    if (thrown instanceof TooLong) return longRefusal
    throw thrown
  })
}
