import { pause } from '../../base/pause.ts'
import { noUnits } from '../bill.ts'
import { faultFor, type Refusals } from '../faults.ts'
import type { AnyRefusal, Dialect, Opened } from '../serve.ts'
import { isSoldFor, type SandboxModel } from '../model.ts'
import { oddHeaders } from '../odd-answers.ts'
import { plainAnswer } from '../plain-answer.ts'
import type { Call, World } from '../protocol.ts'
import type { Steering } from '../steering.ts'
import type { Failure, Order, TaskFamily, VideoTask } from './tasks.ts'

/** How a vendor accepts orders for videos. */
export type Creation<Body, Ask, R extends AnyRefusal> = {
  readonly dialect: Dialect<R>
  readonly family: TaskFamily<Ask>
  open(call: Call): Opened<Body>
  /** Throws what the vendor refuses at once. What it only detects later becomes the order's failure. */
  read(body: Body, model: SandboxModel, call: Call, world: World): NewOrder<Ask>
  /** The vendor's answer for a task that was created. */
  write(task: VideoTask<Ask>): { readonly text: string; readonly headers?: Record<string, string> }
}

export type NewOrder<Ask> = Omit<Order<Ask>, 'ref' | 'model' | 'origin'>

/** Creates a task: first the faults that steering asks for, then the task, then an answer that may get lost. */
export async function createTask<Body, Ask, R extends AnyRefusal>(
  call: Call,
  world: World,
  creation: Creation<Body, Ask, R>,
): Promise<Response> {
  const { dialect, family } = creation
  let model = ''
  let task: VideoTask<Ask> | undefined
  const billNothing = (status: number): void => world.bill.add({ ref: call.ref, model, status, units: noUnits })
  try {
    const refusals = dialect.refusalsFor(dialect.readKey(call.request))
    const opened = creation.open(call)
    model = opened.model
    const known = world.models.get(call.vendor)?.get(model)
    if (!known) throw dialect.unknownModel(model)
    if (!isSoldFor(known, 'video')) throw dialect.wrongModel(model)
    const order = creation.read(opened.body, known, call, world)

    const { steering } = order
    // A caller that hangs up now does not stop it: the request has arrived, so the task is created and billed.
    await pause(steering.number('delay') ?? 0, call.request.signal)
    const fault = await faultFor(onceAccepted(steering), refusals)
    if (fault) {
      billNothing(fault.status)
      return fault
    }
    const { origin } = new URL(call.request.url)
    task = world.videos.of(family).start({ ...order, ref: call.ref, model: known, origin })
    const failStatus = steering.number('charge-then-fail')
    if (failStatus !== undefined) throw refusals.forStatus(failStatus)
    return answer(call, steering, creation.write(task))
  } catch (error) {
    if (!dialect.isRefusal(error)) throw error
    // A task adds its own line to the bill when it ends.
    if (!task) billNothing(error.status)
    return dialect.writeRefusal(call, error)
  }
}

type Written = ReturnType<Creation<unknown, unknown, AnyRefusal>['write']>

function answer({ request }: Call, steering: Steering, { text, headers: given }: Written): Response {
  if (steering.has('lost')) return new Response(lostBody())
  const headers = new Headers({ 'content-type': 'application/json', ...given })
  if (steering.has('headers')) oddHeaders(headers)
  // An endless answer continues inside its last text.
  return plainAnswer({ text, headers, steering, signal: request.signal, openAt: text.lastIndexOf('"'), settle: nobody })
}

/** The task adds its own line to the bill when it ends, whatever happens to the answer. */
function nobody(): void {}

/** `sandbox:fail=CODE` applies to the task; its creation succeeds. */
function onceAccepted(steering: Steering): Steering {
  return { ...steering, text: (word) => (word === 'fail' ? undefined : steering.text(word)) }
}

/**
 * A body that fails before its first byte: Bun then closes the connection without sending a head. Measured on Bun 1.4.
 */
function lostBody(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.error() })
}

/** Answers a call about tasks, which costs nothing and adds no line to the bill. */
export function answerFree<R extends AnyRefusal>(
  call: Call,
  dialect: Dialect<R>,
  find: (refusals: Refusals) => Response,
): Response {
  try {
    return find(dialect.refusalsFor(dialect.readKey(call.request)))
  } catch (error) {
    if (dialect.isRefusal(error)) return dialect.writeRefusal(call, error)
    throw error
  }
}

/** `sandbox:fail=CODE`: the task fails with that code and the vendor's words for it. */
export function failureIn(steering: Steering, errorForCode: (code: string) => Error): Failure | undefined {
  const code = steering.text('fail')
  return code === undefined ? undefined : { code, message: errorForCode(code).message }
}

const refusedPolls = 2

/** `sandbox:poll-status=N`: the first polls are refused, whatever the state of the task. */
export function refusePoll({ steering, polls }: VideoTask<unknown>, refusals: Refusals): void {
  const status = steering.number('poll-status')
  if (status !== undefined && polls <= refusedPolls) throw refusals.forStatus(status)
}
