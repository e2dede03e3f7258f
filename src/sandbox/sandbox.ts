/**
 * The vendor simulator: real HTTP, the vendors' own wire protocols, and a bill of its own. It shares no codec and no
 * arithmetic with the gateway, since a mistake shared would be a mistake hidden.
 *
 * An answer is a function of the request alone: text, tool calls, ids and token counts are the same every time. Two
 * things vary: `created` comes from the clock, and a prompt of 1,024 tokens or more that the same key has sent to the
 * same model before is partly read from the prompt cache (Anthropic's: as far as the request marks it, for as long).
 *
 * Words in the last user text, or in the system text, steer it:
 *
 *   sandbox:fail=CODE       the vendor's error of that code        sandbox:status=N     that HTTP status
 *   sandbox:delay=MS        waits before the head                  sandbox:pace=MS      waits between chunks
 *   sandbox:cut=N           the connection dies after N chunks (a plain answer: mid body)
 *   sandbox:eof=N           a clean end after N chunks, no finish  sandbox:endless      never ends by itself
 *   sandbox:midstream-error an error event after 3 chunks          sandbox:malformed    one event is no JSON
 *   sandbox:tokens=N        so many tokens of content              sandbox:big=BYTES    one chunk of that size
 *   sandbox:usage=N         reports and bills N output tokens      sandbox:zero         uses and costs nothing
 *   sandbox:nousage         billed but not reported                sandbox:inline-usage usage in the finish chunk
 *   sandbox:charge-then-fail=STATUS  bills the answer, then fails  sandbox:leak         a refused key, repeated
 *   sandbox:html            200 with a page                        sandbox:error200     200 with an error body
 *   sandbox:gzip            a small body that unpacks to 100 MB    sandbox:headers      cookies and 50 odd headers
 *   sandbox:drip=BYTES      writes of that size                    sandbox:crlf         CRLF, comments, no space
 *   sandbox:dated           a dated id as `model`                  sandbox:unicode      emoji, CJK, combining marks
 *   sandbox:tool=NAME       calls that tool                        sandbox:only=VENDOR  for that vendor, no other
 *
 * Anthropic's protocol alone knows:
 *
 *   sandbox:redacted        a thought that nobody may read         sandbox:refusal      stops with `refusal`
 *   sandbox:pause           stops with `pause_turn`                sandbox:no-events    a stream without `event:` lines
 *   sandbox:start-usage     usage in message_start alone           sandbox:double-start message_start comes twice
 *
 * OpenAI's responses know, beside `refusal`, which is one in words:
 *
 *   sandbox:finish=failed   an answer that failed; a stream does so after 3 chunks
 *   sandbox:finish=content_filter  incomplete, for that reason
 *
 * Google's protocol alone knows, beside `refusal`, which ends with SAFETY:
 *
 *   sandbox:blocked         a blocked prompt, no candidates        sandbox:finish=NAME  ends with that finishReason
 *   sandbox:error-array     an error before events is an array
 *
 * Pictures, speech and embeddings are steered by their prompt, text or inputs. There `usage=N` is N of what is sold:
 * tokens, characters or pictures; what is sent in pieces is charged whole once a piece has gone out; and they know:
 *
 *   sandbox:expired         links whose time is over already       sandbox:fail-image=N the Nth of several fails
 *
 * Videos are tasks: 50 ms in the queue, 150 ms in the making, then billed if they succeed, else not. There `fail=CODE`
 * fails the task, not its creation; whatever happens to the answer, a task that was made goes on and is billed, so also
 * with `delay`, `cut` and `charge-then-fail`. Video alone knows:
 *
 *   sandbox:queued=MS       waits so long in the queue             sandbox:slow=MS      runs so long
 *   sandbox:stuck           runs and never ends                    sandbox:expire       Ark: ends as `expired`
 *   sandbox:lost            made, but the connection is cut        sandbox:vanish       nobody knows the task; free
 *   sandbox:odd-state=WORD  that word as its state for a while      sandbox:seconds=N    really lasts so long
 *   sandbox:poll-status=N   that status to the first two polls     sandbox:no-video     succeeds without a link
 *   sandbox:no-callback     tells nobody                           sandbox:double-callback  tells everything twice
 *   sandbox:file-status=N   MiniMax: that status to the first two questions for its file
 *
 * For Veo `blocked` is a filtered video: done, without samples and without a charge. Sora gives no links: there `no-video`
 * and `expired` are films that are not to be had.
 *
 * Given a folder, films, the bill and the port are kept there for a day, without anything that a customer said.
 *
 * Beside the vendors: `GET /__bill` (`?ref=` for one call), `GET /__calls` (`?count` for their
 * number alone), and DELETE on either to clear it.
 */
import { Later } from '../base/later.ts'
import type { ListenOptions } from '../base/listen.ts'
import { baseOf } from './bases.ts'
import { openJournal } from './memory/journal.ts'
import { listenAgain } from './memory/port.ts'
import type { SandboxModel } from './model.ts'

export type { SandboxModel } from './model.ts'

/** What is sold, asked for when the simulators are made. */
export type SandboxModels = () => readonly SandboxModel[]

export type SandboxOptions = {
  hostname?: string
  port: number
  /** Where the port was chosen. */
  setting?: string
  models: SandboxModels
  /** Where films, the bill and the port outlive the process; without it nothing does. */
  memory?: { readonly folder: string; readonly complain: (cause: unknown) => void }
}

export type Sandbox = {
  readonly url: string
  readonly port: number
  /** What the vendor's official SDK would call its base address. */
  baseUrl(vendor: string): string
  /** Loads the simulators before the first call has to wait for it. */
  warmUp(): void
  /** Sells other models from now on; the bill and the caches stay. */
  serve(models: SandboxModels): void
  stop(): Promise<void>
}

// Room for a request full of images.
const bodyBytesMax = 256 * 1024 * 1024

/** Opens the port at once. The simulators, a sixth of all there is to load, follow with the first call. */
export function startSandbox(options: SandboxOptions): Sandbox {
  const { hostname = '127.0.0.1', port, setting = 'SANDBOX_PORT', models, memory } = options
  let sold = models
  const simulators = new Later(async () => {
    const { makeSimulators } = await import('./simulators.ts')
    const journal = memory && openJournal({ ...memory, now: Date.now() })
    return makeSimulators(sold(), journal && { journal, origin: listener.url })
  })
  const fetch: ListenOptions['fetch'] = async (request, connection) =>
    (await simulators.get()).answer(request, connection)
  const listener = listenAgain({ hostname, port, setting, bodyBytesMax, fetch }, memory?.folder)
  return {
    url: listener.url,
    port: listener.port,
    baseUrl: (vendor) => `${listener.url}/${vendor}${baseOf(vendor)}`,
    warmUp() {
      simulators.get().catch(() => {}) // whoever calls next is told why
    },
    serve(models) {
      sold = models
      const told = simulators.ifMade().then((running) => running?.serve(models()))
      told.catch(() => {}) // those made later sell these anyway
    },
    async stop() {
      // What still streams may never end by itself.
      await listener.stop(true)
      const running = await simulators.ifMade()
      running?.stop()
    },
  }
}
