import { noUnits, type Units } from './bill.ts'
import { charge } from './charge.ts'
import { disturb } from './disturb.ts'
import { type Frame, free, streamBody } from './event-stream.ts'
import { faultAfterDelay, type Refusals } from './faults.ts'
import { type Fields, parseFields, textIn } from './fields.ts'
import { isSoldFor, type SandboxModel } from './model.ts'
import { oddHeaders } from './odd-answers.ts'
import { plainAnswer } from './plain-answer.ts'
import type { Call, Protocol, World } from './protocol.ts'
import type { Steering } from './steering.ts'

/** What a vendor refuses with: each protocol has a class for it, with what its body tells. */
export type AnyRefusal = Error & { readonly status: number }

/** How a vendor reads a key and words its refusals. */
export type Dialect<R extends AnyRefusal> = {
  readKey(request: Request): string
  isRefusal(error: unknown): error is R
  writeRefusal(call: Call, refusal: R): Response
  unknownModel(model: string): R
  /** For a model that exists but has another capability. */
  wrongModel(model: string): R
  refusalsFor(key: string): Refusals
}

/** A checked request, which determines the answer. */
export type ServedAsk = { readonly model: SandboxModel; readonly steering: Steering }

/** The answer, made and counted before any of it is sent. */
export type Answer = {
  /** The usage that is reported and billed. */
  readonly units: Units
  readonly headers: Record<string, string>
  readonly body: Whole | Pieces | Frames
}

/** An endless answer continues for ever inside the text that begins after `openAfter`, by default inside the last. */
type Whole = { readonly kind: 'whole'; readonly text: string; readonly openAfter?: string }

/** Sent one by one. A client that received one piece pays for all, because they were made before the first was sent. */
type Pieces = {
  readonly kind: 'pieces'
  readonly texts: Iterable<string>
  readonly encode: (frame: Frame) => Uint8Array
  /** What is sent instead of a piece when the stream fails. */
  readonly error: () => string
}

/** A stream that is charged for what was sent. `charged` may leave out a part of that. */
type Frames = {
  readonly kind: 'frames'
  readonly frames: Generator<Frame, void>
  readonly encode: (frame: Frame) => Uint8Array
  readonly charged?: (sent: Units) => Units
}

/** One path that makes something at once, in one vendor's protocol. */
export type Endpoint<Body, Ask extends ServedAsk, R extends AnyRefusal> = {
  readonly dialect: Dialect<R>
  /** A model must be sold for one of these. */
  readonly capabilities: readonly string[]
  open(call: Call): Opened<Body> | Promise<Opened<Body>>
  read(body: Body, model: SandboxModel, call: Call): Ask
  make(ask: Ask, call: Call, caller: Caller): Answer
}

/** The caller's key, and the world that holds the prompts cached for it. */
type Caller = { readonly key: string; readonly world: World }

export type Opened<Body> = { readonly model: string; readonly body: Body }

/** Opens a JSON object that names the model in `model`. */
export const openFields =
  (refuse: () => Error) =>
  ({ text }: Call): Opened<Fields> => {
    const body = parseFields(text)
    if (!body) throw refuse()
    return { model: textIn(body.model), body }
  }

/** The endpoint as a protocol of its own, at a path under the root on which it is mounted. */
export const endpointAt =
  <Body, Ask extends ServedAsk, R extends AnyRefusal>(path: string, endpoint: Endpoint<Body, Ask, R>): Protocol =>
  (_, root, world) => [{ method: 'POST', path: `${root}${path}`, answer: (call) => serve(call, world, endpoint) }]

/**
 * Answers one call and adds its line to the bill, however the call ends. `named` is the model of a path that names it.
 */
export async function serve<Body, Ask extends ServedAsk, R extends AnyRefusal>(
  call: Call,
  world: World,
  endpoint: Endpoint<Body, Ask, R>,
  named = '',
): Promise<Response> {
  const { dialect } = endpoint
  let model = named
  let isBilled = false
  const billNothing = (status: number): void => world.bill.add({ ref: call.ref, model, status, units: noUnits })
  try {
    const key = dialect.readKey(call.request)
    const opened = await endpoint.open(call)
    model = opened.model
    const known = world.models.get(call.vendor)?.get(model)
    if (!known) throw dialect.unknownModel(model)
    if (!isSoldFor(known, ...endpoint.capabilities)) throw dialect.wrongModel(model)
    const ask = endpoint.read(opened.body, known, call)

    const { steering } = ask
    const refusals = dialect.refusalsFor(key)
    const fault = await faultAfterDelay(call.request, steering, refusals)
    if (fault) {
      billNothing(fault.status)
      return fault
    }
    const made = endpoint.make(ask, call, { key, world })
    const failStatus = steering.number('charge-then-fail')
    if (failStatus === undefined) return deliver(call, world, ask, made)
    charge(call, world, ask, failStatus, made.units)
    isBilled = true
    throw refusals.forStatus(failStatus)
  } catch (error) {
    if (!dialect.isRefusal(error)) throw error
    if (!isBilled) billNothing(error.status)
    return dialect.writeRefusal(call, error)
  }
}

function deliver(call: Call, world: World, ask: ServedAsk, { units, headers: given, body }: Answer): Response {
  const { steering } = ask
  const { signal } = call.request
  const headers = new Headers(given)
  if (steering.has('headers')) oddHeaders(headers)
  if (body.kind === 'whole') {
    const { text, openAfter } = body
    return plainAnswer({
      text,
      headers,
      steering,
      signal,
      openAt: openAfter === undefined ? text.lastIndexOf('":"') + 3 : text.indexOf(openAfter) + openAfter.length,
      settle: (status) => charge(call, world, ask, status, status === 200 ? units : noUnits),
    })
  }
  const { frames, charged } = body.kind === 'frames' ? body : framed(body, steering, units)
  const stream = streamBody({
    frames,
    encode: body.encode,
    steering,
    units,
    signal,
    settle: ({ status, units: sent }) => charge(call, world, ask, status, charged?.(sent) ?? sent),
  })
  return new Response(stream, { headers })
}

function framed({ texts, encode, error }: Pieces, steering: Steering, units: Units): Frames {
  return {
    kind: 'frames',
    frames: disturb(framesOf(texts, steering.has('endless')), steering, { error, malformed: () => '{"type":"unfini' }),
    encode,
    charged: (sent) => (sent === noUnits ? noUnits : units),
  }
}

/** Every piece is content except the last, at which the whole answer is charged. */
function* framesOf(texts: Iterable<string>, isEndless: boolean): Generator<Frame, void> {
  let held: string | undefined
  for (const text of texts) {
    if (held !== undefined) yield free('content', held)
    held = text
    for (let round = 0; round < (isEndless ? Infinity : 0); round += 1) yield free('content', text)
  }
  if (held !== undefined) yield free('end', held)
}
