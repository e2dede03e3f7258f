import { noUnits, type Units } from '../bill.ts'
import { charge } from '../charge.ts'
import { faultAfterDelay } from '../faults.ts'
import { type Fields, isGiven, parseFields, shown, textIn } from '../fields.ts'
import { isSoldFor, type SandboxModel } from '../model.ts'
import { oddHeaders } from '../odd-answers.ts'
import type { Prompt } from '../prompt.ts'
import type { Call, World } from '../protocol.ts'
import type { Steering } from '../steering.ts'
import { badRequest, errorForStatus, modelNotFound, VendorError, writeError } from './errors.ts'
import { refusalsFor } from './faults.ts'

type Ask = { readonly model: SandboxModel; readonly steering: Steering; readonly prompt: Prompt }

/** How one of OpenAI's two protocols, chat completions or responses, is answered. */
type Way<A extends Ask, Composition extends { readonly units: Units }> = {
  /** The refusal for a model that is not a chat model. */
  notServed(model: string): VendorError
  readAsk(body: Fields, text: string, model: SandboxModel): A
  compose(ask: A, cachedTokens: number): Composition
  answer(call: Call, world: World, ask: A, composition: Composition): Response
}

/** Answers one chat call and adds its line to the bill, however the call ends. */
export async function answerCall<A extends Ask, C extends { readonly units: Units }>(
  call: Call,
  world: World,
  way: Way<A, C>,
): Promise<Response> {
  let model = ''
  const billNothing = (status: number): void => world.bill.add({ ref: call.ref, model, status, units: noUnits })
  try {
    const key = readKey(call.request)
    const body = readBody(call.text)
    model = shown(body.model)
    const known = world.models.get(call.vendor)?.get(model)
    if (!known) throw modelNotFound(model)
    if (!isSoldFor(known, 'chat')) throw way.notServed(model)
    const ask = way.readAsk(body, call.text, known)
    const fault = await faultAfterDelay(call.request, ask.steering, refusalsFor(key))
    if (fault) {
      billNothing(fault.status)
      return fault
    }
    const owner = [key, model, textIn(body.prompt_cache_key)].join('\n')
    const composition = way.compose(ask, world.cache.read(owner, ask.prompt))
    chargeThenFail(call, world, ask, composition.units)
    return way.answer(call, world, ask, composition)
  } catch (error) {
    if (!(error instanceof VendorError)) throw error
    // A refusal after the charge already has its line on the bill.
    if (!(error instanceof ChargedError)) billNothing(error.status)
    return writeError(call.vendor, error, call.text)
  }
}

/** `sandbox:charge-then-fail=STATUS`: the answer is charged but never arrives. */
class ChargedError extends VendorError {}

function chargeThenFail(call: Call, world: World, ask: Ask, units: Units): void {
  const status = ask.steering.number('charge-then-fail')
  if (status === undefined) return
  charge(call, world, ask, status, units)
  const { message, type, code } = errorForStatus(status)
  throw new ChargedError({ status, message, type, code })
}

/** `id` is the answer's id without its prefix. */
export function answerHeaders({ steering }: Pick<Ask, 'steering'>, id: string, contentType: string): Headers {
  const headers = new Headers({
    'content-type': contentType,
    'x-request-id': `req_${id}`,
    'openai-version': '2020-10-01',
  })
  if (steering.has('headers')) oddHeaders(headers)
  return headers
}

export function readKey(request: Request): string {
  const { headers } = request
  // Azure also takes its key in a header of its own.
  const key = /^Bearer +(\S.*)$/i.exec(headers.get('authorization') ?? '')?.[1] ?? headers.get('api-key') ?? undefined
  if (key === undefined) {
    const message =
      "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
    throw new VendorError({ status: 401, message })
  }
  if (key === 'bad-key') {
    const message =
      'Incorrect API key provided: ba***ey. You can find your API key at https://platform.openai.com/account/api-keys.'
    throw new VendorError({ status: 401, message, code: 'invalid_api_key' })
  }
  return key
}

export function readBody(text: string): Fields {
  const body = parseFields(text)
  if (!body) {
    const message =
      'We could not parse the JSON body of your request. (HINT: This likely means you aren’t using your HTTP library correctly.)'
    throw badRequest(message, null)
  }
  if (!isGiven(body.model)) throw badRequest('you must provide a model parameter', null)
  return body
}
