/**
 * The vendor simulator: real HTTP, the vendors' own wire protocols, and a bill of its own. It shares no codec and no
 * arithmetic with the gateway, because a shared mistake would stay hidden.
 *
 * An answer depends on the request alone: text, tool calls, ids and token counts are the same every time. Two things
 * vary: `created` comes from the clock, and a prompt of 1,024 tokens or more that the same key sent to the same model
 * before is partly read from the prompt cache (at Anthropic: the part that the request marks, for as long as it asks).
 *
 * Steering words in the last user text or in the system text change its behaviour:
 *
 *   sandbox:fail=CODE       the vendor's error of that code        sandbox:status=N     that HTTP status, like fail=N
 *   sandbox:delay=MS        waits before the head                  sandbox:pace=MS      waits between chunks
 *   sandbox:cut=N           the connection dies after N chunks (a plain answer: mid body)
 *   sandbox:eof=N           a clean end after N chunks, no finish  sandbox:endless      never ends by itself
 *   sandbox:midstream-error an error event after 3 chunks          sandbox:malformed    one event is not JSON
 *   sandbox:tokens=N        content of N tokens                    sandbox:big=BYTES    one chunk of that size
 *   sandbox:usage=N         reports and bills N output tokens      sandbox:zero         uses and costs nothing
 *   sandbox:nousage         billed but not reported                sandbox:inline-usage usage in the finish chunk
 *   sandbox:charge-then-fail=STATUS  bills the answer, then fails  sandbox:leak         a refused key, repeated
 *   sandbox:html            200 with a page                        sandbox:error200     200 with an error body
 *   sandbox:gzip            a small body that unpacks to 100 MB    sandbox:headers      cookies and 50 odd headers
 *   sandbox:drip=BYTES      writes of that size                    sandbox:crlf         CRLF, comments, no space
 *   sandbox:dated           a dated id as `model`                  sandbox:unicode      emoji, CJK, combining marks
 *   sandbox:tool=NAME       calls that tool                        sandbox:only=VENDOR  steers that vendor alone
 *
 * Words of Anthropic's protocol alone:
 *
 *   sandbox:redacted        a redacted thinking block              sandbox:refusal      stops with `refusal`
 *   sandbox:pause           stops with `pause_turn`                sandbox:no-events    a stream without `event:` lines
 *   sandbox:start-usage     usage only in message_start            sandbox:double-start message_start comes twice
 *
 * Words of OpenAI's responses. There `refusal` is a refusal in words:
 *
 *   sandbox:finish=failed   a failed answer; a stream fails after 3 chunks
 *   sandbox:finish=content_filter  incomplete, for that reason
 *
 * Words of Google's protocol alone. There `refusal` ends with SAFETY:
 *
 *   sandbox:blocked         a blocked prompt, no candidates        sandbox:finish=NAME  ends with that finishReason
 *   sandbox:error-array     an error before the first event is an array
 *
 * Images, speech and embeddings are steered by their prompt, text or inputs. There `usage=N` counts what is sold:
 * tokens, characters or images. An answer sent in pieces is charged in full once its first piece is sent. Their words:
 *
 *   sandbox:expired         links that have already expired        sandbox:fail-image=N the Nth of several fails
 *
 * Videos are tasks: 50 ms in the queue, 150 ms in the making, then billed if they succeed and otherwise free. There
 * `fail=CODE` fails the task, not its creation. Once created, a task goes on and is billed whatever happens to the
 * response, also with `delay`, `cut` and `charge-then-fail`. Words of video alone:
 *
 *   sandbox:queued=MS       waits that long in the queue           sandbox:slow=MS      runs that long
 *   sandbox:stuck           runs and never ends                    sandbox:expire       Ark: ends as `expired`
 *   sandbox:lost            created, but the connection is cut     sandbox:vanish       unknown to every poll; free
 *   sandbox:odd-state=WORD  that word as its state for a while     sandbox:seconds=N    really lasts that long
 *   sandbox:poll-status=N   that status to the first two polls     sandbox:no-video     succeeds without a link
 *   sandbox:no-callback     sends no callback                      sandbox:double-callback  sends every callback twice
 *   sandbox:file-status=N   MiniMax: that status to the first two requests for its file
 *
 * For Veo `blocked` is a filtered video: done, without samples and without a charge. Sora gives no links: there
 * `no-video` and `expired` mean that the video cannot be downloaded.
 *
 * Given a folder, videos, the bill and the port are kept there for a day, without anything that a customer wrote.
 *
 * Control paths beside the vendors: `GET /__bill` (`?ref=` for one call), `GET /__calls` (`?count` for their number
 * alone), and DELETE on either to clear it.
 */
import { Later } from '../base/later.ts'
import { baseOf } from './bases.ts'
import { openJournal } from './memory/journal.ts'
import type { ListenOptions } from './listen.ts'
import { listenAgain } from './memory/port.ts'
import type { SandboxModel } from './model.ts'

export type { SandboxModel } from './model.ts'

/** The models on sale. Called when the simulators are made. */
export type SandboxModels = () => readonly SandboxModel[]

export type SandboxOptions = {
  hostname?: string
  port: number
  /** The name of the setting that chose the port, for error messages. */
  setting?: string
  models: SandboxModels
  /** Keeps videos, the bill and the port across restarts. Without it nothing outlives the process. */
  memory?: { readonly folder: string; readonly complain: (cause: unknown) => void }
}

export type Sandbox = {
  readonly url: string
  readonly port: number
  /** What the vendor's official SDK would use as its base address. */
  baseUrl(vendor: string): string
  /** Loads the simulators now, so that the first call does not wait for it. */
  warmUp(): void
  /** Replaces the models on sale. The bill and the caches stay. */
  serve(models: SandboxModels): void
  stop(): Promise<void>
}

// Room for a request full of images.
const bodyBytesMax = 256 * 1024 * 1024

/** Opens the port at once. The simulators, a sixth of all code to load, are loaded by the first call. */
export function startSandbox(options: SandboxOptions): Sandbox {
  const { hostname = '127.0.0.1', port, setting = 'SANDBOX_PORT', models, memory } = options
  let sold = models
  const simulators = new Later(async () => {
    const { makeSimulators } = await import('./simulators.ts')
    const journal = memory && openJournal({ ...memory, now: Date.now() })
    return makeSimulators(sold(), journal && { journal, origin: listener.url })
  })
  const fetch: ListenOptions['fetch'] = async (request, holdOpen) => (await simulators.get()).answer(request, holdOpen)
  const listener = listenAgain({ hostname, port, setting, bodyBytesMax, fetch }, memory?.folder)
  return {
    url: listener.url,
    port: listener.port,
    baseUrl: (vendor) => `${listener.url}/${vendor}${baseOf(vendor)}`,
    warmUp() {
      simulators.get().catch(() => {}) // the next call reports the reason
    },
    serve(models) {
      sold = models
      const told = simulators.ifMade().then((running) => running?.serve(models()))
      told.catch(() => {}) // simulators made later sell these models anyway
    },
    async stop() {
      // A stream that is still open may never end by itself.
      await listener.stop('at-once')
      const running = await simulators.ifMade()
      running?.stop()
    },
  }
}
