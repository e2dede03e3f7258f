import { expect } from 'bun:test'
import type { AskFacts } from './ask-facts.ts'
import type { Protocol, Speech } from './corpus.ts'
import { fieldsIn, type Fields } from './exact-json.ts'
import type { ReplyFacts, UsageFacts } from './reply-facts.ts'
import { wishesOf } from './responses-facts.ts'

/** What has to arrive, whatever the goldens say, with the reason wherever a vendor cannot take something. */

export type Asked = {
  readonly asked: AskFacts
  readonly sent: AskFacts
  /** The vendor's. */
  readonly speech: Speech
  readonly model: string
  /** Client and vendor speak the same protocol, so the vendor judges what the client wrote. */
  readonly isPassed: boolean
  readonly sentText: string
}

type Row<T> = { readonly what: string; check(seen: T): void }

/** The texts that are missing when each is searched for behind the one before it. */
function inOrder(texts: readonly string[], within: string): string[] {
  let at = 0
  return texts.filter((text) => {
    const found = within.indexOf(text, at)
    if (found >= 0) at = found + text.length
    return found < 0
  })
}

function callsIn({ calls }: Pick<AskFacts | ReplyFacts, 'calls'>) {
  return calls.map(({ name, input }) => ({ name, input }))
}

function sorted({ results }: AskFacts) {
  return results.toSorted((a, b) => a.call - b.call)
}

/** Whether it is a real signature, not the placeholder that the vendor accepts for a lost one. */
function isMade(signature: string | undefined): boolean {
  return signature !== undefined && !signature.startsWith('skip_')
}

const isOpenai = (speech: Speech) => speech === 'common' || speech === 'responses'
const makerOf = (signature: string) => (signature.startsWith('openai:') ? 'openai' : 'anthropic')
const isThinker = (model: string) => /^gpt-5|^o\d/.test(model)

export const asks: readonly Row<Asked>[] = [
  {
    what: 'the instructions, in order',
    check({ asked, sent }) {
      // Models that take no instructions in the middle get them in a user message, marked as instructions.
      const marked = sent.said.filter(({ text }) => text.startsWith('<system>')).map(({ text }) => text)
      expect(inOrder(asked.instructions, [...sent.instructions, ...marked].join('\n\n'))).toEqual([])
    },
  },
  {
    what: 'the messages with their roles, in order',
    check({ asked, sent }) {
      const written = sent.said.map(({ by, text }) => `${by}: ${text}`).join('\n')
      const wanted = asked.said.flatMap(({ by, text }, at) => {
        // Consecutive texts of one speaker may have been joined.
        return asked.said[at - 1]?.by === by ? [text] : [by, text]
      })
      expect(inOrder(wanted, written)).toEqual([])
    },
  },
  {
    what: 'tool calls with their names and arguments, in order',
    check({ asked, sent }) {
      expect(callsIn(sent)).toEqual(callsIn(asked))
    },
  },
  {
    what: 'the ids of tool calls, where the vendor accepts them',
    check({ asked, sent, speech, isPassed }) {
      if (isPassed) return expect(sent.calls.map(({ id }) => id)).toEqual(asked.calls.map(({ id }) => id))
      const takes = { common: /^.{1,40}$/s, responses: /^.{1,40}$/s, anthropic: /^[\w-]+$/, google: /^/ }[speech]
      const ids = sent.calls.map(({ id }) => id)
      expect(ids.filter((id) => !takes.test(id) && id !== '')).toEqual([])
      for (const [at, { id }] of asked.calls.entries()) {
        // An id that stands for another vendor's is spelled out where possible.
        const isTaken = id !== '' && takes.test(id) && !id.startsWith('tpk_')
        const isFirst = asked.calls.findIndex((call) => call.id === id) === at
        if (isTaken && isFirst) expect(ids[at]).toBe(id)
      }
    },
  },
  {
    what: 'tool results, each with the call that it answers',
    check({ asked, sent, speech }) {
      expect(sorted(sent).map(({ call }) => call)).toEqual(sorted(asked).map(({ call }) => call))
      for (const [at, wanted] of sorted(asked).entries()) {
        const found = sorted(sent)[at]
        expect(found?.call).toBeGreaterThanOrEqual(0)
        expect(found?.text).toContain(wanted.text)
        // Neither of OpenAI's protocols can mark a failure, so the text says it.
        if (isOpenai(speech) && wanted.isError) expect(found?.text ?? '').toStartWith('Error')
        else expect(found?.isError).toBe(wanted.isError)
      }
    },
  },
  {
    what: 'images, byte for byte',
    check: ({ asked, sent }) => expect(sent.images).toEqual(asked.images),
  },
  {
    what: 'documents with their names and notes',
    check({ asked, sent, sentText }) {
      const said = [...sent.said.map(({ text }) => text), ...sent.results.map(({ text }) => text)]
      for (const document of asked.documents) {
        const isThere = sent.documents.includes(document) || said.some((text) => text.includes(document))
        expect([document, isThere]).toEqual([document, true])
      }
      const missing = asked.labels.filter((label) => !sentText.includes(JSON.stringify(label).slice(1, -1)))
      expect(missing).toEqual([])
    },
  },
  {
    what: 'reasoning, only at the vendor that signed it',
    check({ asked, sent, speech }) {
      const makers = { anthropic: 'anthropic', responses: 'openai', common: undefined, google: undefined }
      const theirs = asked.thoughts.filter(({ signature }) => makerOf(signature) === makers[speech])
      expect(sent.thoughts).toEqual(theirs)
      expect(sent.hidden).toEqual(speech === 'anthropic' ? asked.hidden : [])
    },
  },
  {
    what: 'the signatures of tool calls, only at Google',
    check({ asked, sent, speech }) {
      const made = sent.calls.map(({ signature }) => (isMade(signature) ? signature : undefined))
      expect(made).toEqual(asked.calls.map(({ signature }) => (speech === 'google' ? signature : undefined)))
    },
  },
  {
    what: 'tools with their descriptions and parameters',
    check({ asked, sent, speech }) {
      // Only Anthropic is given tools that have yet to be found by a search.
      const offered = asked.tools.filter(({ isWaiting }) => speech === 'anthropic' || !isWaiting)
      const shown = offered.map((tool) => ({ ...tool, isWaiting: tool.isWaiting && speech === 'anthropic' }))
      // A conversation with calls in it must offer tools, even if the client no longer does.
      if (asked.tools.length > 0) expect(sent.tools).toEqual(shown)
    },
  },
  {
    what: 'the tool choice',
    check({ asked, sent, speech }) {
      if (asked.tools.length === 0) return
      expect(sent.choice).toBe(asked.choice)
      // Google cannot be told to make one call at a time.
      if (speech !== 'google' && asked.choice !== 'none') expect(sent.isAlone).toBe(asked.isAlone)
    },
  },
  {
    what: 'stop sequences',
    check({ asked, sent, speech, model }) {
      if (isOpenai(speech) && isThinker(model)) return expect(sent.stop).toEqual([]) // refused by the vendor
      expect(sent.stop).toEqual(asked.stop)
    },
  },
  {
    what: 'the cap on output',
    check({ asked, sent, speech }) {
      const modelMost = 30_000
      if (asked.cap === undefined) expect(sent.cap ?? modelMost).toBeGreaterThanOrEqual(modelMost)
      else if (asked.cap <= modelMost) expect(sent.cap).toBe(asked.cap)
      else expect(sent.cap).toBeGreaterThan(modelMost)
      if (speech === 'anthropic') expect(sent.cap).toBeDefined()
    },
  },
  {
    what: 'the schema of the answer',
    check: ({ asked, sent }) => expect(sent.schema).toEqual(asked.schema),
  },
]

export type Replied = {
  readonly protocol: Protocol
  /** The request as the client wrote it. */
  readonly request: Fields
  /** The vendor's. */
  readonly speech: Speech
  /** One call at a time. */
  readonly isAlone: boolean
  readonly said: ReplyFacts
  readonly got: ReplyFacts
}

export const replies: readonly Row<Replied>[] = [
  { what: 'the text', check: ({ said, got }) => expect(got.text).toBe(said.text) },
  {
    what: 'tool calls with their names and arguments',
    check({ said, got, isAlone }) {
      // Google cannot be told: a client that wants one call at a time gets the first.
      expect(callsIn(got)).toEqual(isAlone ? callsIn(said).slice(0, 1) : callsIn(said))
    },
  },
  {
    what: 'the ids of tool calls, which the gateway makes for Google',
    check({ said, got, request }) {
      // The retired functions have no ids.
      if (request['functions'] !== undefined) return
      const ids = got.calls.map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      for (const [at, id] of ids.entries()) {
        expect(id).toMatch(/^[\w-]{1,40}$/)
        if (said.calls[at]?.id !== '') expect(id).toBe(said.calls[at]?.id ?? '')
      }
    },
  },
  {
    what: 'the signatures of Google’s tool calls, to be sent back',
    check({ said, got, request }) {
      if (request['functions'] !== undefined) return // nor signatures
      const made = said.calls.map(({ signature }) => signature)
      expect(got.calls.map(({ signature }) => signature)).toEqual(made.slice(0, got.calls.length))
    },
  },
  {
    what: 'reasoning, if the client asked to see it, and its signature in any case',
    check({ said, got, protocol, request }) {
      const { type, display } = fieldsIn(request['thinking'])
      const wishes = wishesOf(request)
      const isSilent = protocol === 'messages' && (type === undefined || type === 'disabled')
      const isOff = isSilent || (protocol === 'responses' && !wishes.isSealed)
      const isShown = protocol === 'responses' ? wishes.isShown : !isSilent && display !== 'omitted'
      expect(got.thinking).toBe(isShown ? said.thinking : '')
      expect(got.signed).toEqual(isOff ? [] : said.signed)
      expect(got.hidden).toEqual(isOff ? [] : said.hidden)
    },
  },
  {
    what: 'the finish reason',
    check({ said, got, protocol }) {
      expect(got.finish).toBe(said.finish)
      if (protocol === 'messages') expect(got.stopSequence).toBe(said.stopSequence)
    },
  },
]

/** Compares with the vendor's own bill, which the simulator computes. */
export function expectUsage(got: UsageFacts, units: Readonly<Record<string, number>>): void {
  const { input = 0, cachedInput = 0, cacheWrite5m = 0, cacheWrite1h = 0, output = 0, reasoning = 0 } = units
  expect(got).toEqual({ input, cached: cachedInput, written: cacheWrite5m + cacheWrite1h, output, reasoning })
}
