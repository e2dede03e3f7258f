import { excerpt } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import {
  type AssistantBlock,
  type DocumentBlock,
  googleSignature,
  type ImageBlock,
  type TextBlock,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { headingOf } from '../document-heading.ts'
import { argumentsIn, objectWrittenIn } from '../loose.ts'
import { continuePrompt, openingWords } from '../turns.ts'
import { unsupportedBlock } from '../unsupported-block.ts'
import type { Family } from './family.ts'
import { writeName } from './function-name.ts'
import { writeMedia } from './write-media.ts'

/** The value that the vendor documents for a call whose signature is lost or that another model made. */
const skippedSignature = 'skip_thought_signature_validator'

/** A content in the making: function responses are written before its other parts. */
type Draft = { readonly role: 'user' | 'model'; readonly answers: Answer[]; readonly parts: JsonObject[] }
type Answer = { readonly order: number; readonly part: JsonObject }

/** A call made earlier: results give its id, but the vendor also wants its name. `order` is its place in its turn. */
type EarlierCall = { readonly name: string; readonly order: number }

/**
 * Writes `contents`: neighbours of one role are merged, and empty ones left out. Instructions in the middle are not
 * written here, because the vendor has no place for them in `contents`: see `writeSystem`.
 */
export function writeContents(
  turns: readonly Turn[],
  { isThirdGeneration, mayContinueAssistant }: Family,
): JsonObject[] {
  const made = new Map<string, EarlierCall>()
  const drafts: Draft[] = []
  for (const turn of turns) {
    if (turn.role === 'system') continue
    const role = turn.role === 'user' ? 'user' : 'model'
    const last = drafts.at(-1)
    const draft: Draft = last?.role === role ? last : { role, answers: [], parts: [] }
    if (turn.role === 'user') for (const block of turn.blocks) addUserBlock(draft, block, made, isThirdGeneration)
    else addModelBlocks(draft, turn.blocks, made, isThirdGeneration)
    if (draft !== last && draft.answers.length + draft.parts.length > 0) drafts.push(draft)
  }
  if (!mayContinueAssistant && drafts.at(-1)?.role === 'model') {
    drafts.push({ role: 'user', answers: [], parts: [{ text: continuePrompt }] })
  }
  // A history that was cut to its end may begin with a call, which the vendor takes only after a user's content.
  if (drafts[0]?.role === 'model' && drafts[0].parts.some(isCall)) {
    drafts.unshift({ role: 'user', answers: [], parts: [{ text: openingWords }] })
  }
  return drafts.map(({ role, answers, parts }) => {
    const inOrder = answers.toSorted((a, b) => a.order - b.order).map(({ part }) => part)
    return { role, parts: [...inOrder, ...parts] }
  })
}

function isCall(part: JsonObject): boolean {
  return part['functionCall'] !== undefined
}

/** The instructions from the beginning and from the middle of the conversation, in order. */
export function writeSystem(system: readonly TextBlock[], turns: readonly Turn[]): JsonObject[] {
  const between = turns.flatMap((turn) => (turn.role === 'system' ? turn.blocks : []))
  return [...system, ...between].flatMap(({ text }) => writeText(text))
}

/** The vendor refuses an empty text. */
function writeText(text: string): JsonObject[] {
  return text === '' ? [] : [{ text }]
}

function addUserBlock(
  draft: Draft,
  block: UserBlock,
  made: ReadonlyMap<string, EarlierCall>,
  isThirdGeneration: boolean,
): void {
  switch (block.kind) {
    case 'text':
      draft.parts.push(...writeText(block.text))
      return
    case 'image':
    case 'audio':
    case 'video':
      draft.parts.push(writeMedia(block.media, block))
      return
    case 'document':
      draft.parts.push(...writeDocument(block))
      return
    case 'tool-result':
      addResult(draft, block, made, isThirdGeneration)
  }
}

/** A document's title and context are written before it as text, because the vendor has no fields for them. */
function writeDocument(document: DocumentBlock): JsonObject[] {
  const { media } = document
  return [
    ...writeText(headingOf(document)),
    ...(media.kind === 'text' ? writeText(media.text) : [writeMedia(media, document)]),
  ]
}

function addResult(
  draft: Draft,
  block: ToolResultBlock,
  made: ReadonlyMap<string, EarlierCall>,
  isThirdGeneration: boolean,
): void {
  const call = made.get(block.callId)
  if (call === undefined) {
    throw unsupportedBlock(
      block,
      `the result for '${excerpt(block.callId)}' answers no tool call before it.`,
      'invalid_value',
    )
  }
  const text = block.blocks.flatMap(writtenText).filter((said) => said !== '')
  const media = block.blocks.flatMap(writtenMedia)
  // The third generation takes images inside a function response; before it they follow the responses.
  const isInside = (part: JsonObject) => isThirdGeneration && part['inlineData'] !== undefined
  const inside = media.filter(isInside)
  draft.answers.push({
    order: call.order,
    part: {
      functionResponse: {
        id: block.callId,
        name: call.name,
        response: block.isError ? { error: text.join('\n') } : asResponse(text.join('\n')),
        ...(inside.length > 0 && { parts: inside }),
      },
    },
  })
  const behind = media.filter((part) => !isInside(part))
  // Outside the response, only this text tells which result the media belong to.
  if (behind.length > 0)
    draft.parts.push({ text: `Attached to the result of ${call.name} (${block.callId}):` }, ...behind)
}

type ResultBlock = TextBlock | ImageBlock | DocumentBlock

function writtenText(block: ResultBlock): string[] {
  if (block.kind === 'text') return [block.text]
  if (block.kind === 'image') return []
  return block.media.kind === 'text' ? [headingOf(block), block.media.text] : [headingOf(block)]
}

function writtenMedia(block: ResultBlock): JsonObject[] {
  return block.kind === 'text' || block.media.kind === 'text' ? [] : [writeMedia(block.media, block)]
}

// A double holds any 15 digits exactly. Tools often return longer ids as numbers, so a text with one is not parsed.
const longNumber = /[\d.]{16}|\d[eE][+-]?\d{3}/

/** The vendor requires an object: the tool's own JSON object, or its text inside one. */
function asResponse(text: string): JsonObject {
  const own = text.startsWith('{') && !longNumber.test(text) ? objectWrittenIn(text) : undefined
  return own ?? { result: text }
}

/** Thinking is not sent back to the vendor, except for the signature of the call that followed it. */
function addModelBlocks(
  draft: Draft,
  blocks: readonly AssistantBlock[],
  made: Map<string, EarlierCall>,
  isThirdGeneration: boolean,
): void {
  let carried: string | undefined
  // Of parallel calls the vendor signs only the first.
  let isFirst = !draft.parts.some(isCall)
  for (const block of blocks) {
    switch (block.kind) {
      case 'text':
      case 'refusal':
        draft.parts.push(...writeText(block.text))
        break
      case 'image':
        draft.parts.push(writeMedia(block.media, block))
        break
      case 'thinking':
        carried = googleSignature(block.signature) ?? carried
        break
      case 'thinking-redacted':
        break
      case 'tool-call': {
        const signature = googleSignature(block.signature) ?? carried
        carried = undefined
        made.set(block.id, { name: writeName(block.name), order: draft.parts.length })
        draft.parts.push(writeCall(block, signature ?? (isThirdGeneration && isFirst ? skippedSignature : undefined)))
        isFirst = false
      }
    }
  }
}

function writeCall({ id, name, argumentsText }: ToolCallBlock, signature: string | undefined): JsonObject {
  return {
    functionCall: { id, name: writeName(name), args: argumentsIn(argumentsText) },
    ...(signature !== undefined && { thoughtSignature: signature }),
  }
}
