import type { Units } from '../bill.ts'
import { eventEncoder, type Frame } from '../event-stream.ts'
import { type Fields, fieldsIn, isGiven, itemsIn } from '../fields.ts'
import { readTexts } from '../gemini/ask.ts'
import { checkContents, checkSystemInstruction } from '../gemini/check-contents.ts'
import { isWithheld } from '../gemini/compose.ts'
import { errorBody, errorForStatus, type GoogleError, invalid, jsonType, writeJson } from '../gemini/errors.ts'
import type { Delivery } from '../gemini/generate.ts'
import { type CountedPrompt, countPrompt } from '../gemini/prompt.ts'
import { readMessage } from '../gemini/proto.ts'
import { generateContentRequest } from '../gemini/shapes.ts'
import { writeBlock, writeContent, writeFinish, writeModalities } from '../gemini/write.ts'
import { reportedUnits } from '../media/reported.ts'
import type { ServedAsk, Endpoint, Answer } from '../serve.ts'
import { isSoldFor, type SandboxModel } from '../model.ts'
import { seededId } from '../seeded.ts'
import { splitTokens } from '../tokens.ts'
import { dialectOn } from '../gemini/dialect.ts'
import { type ImageWork, drawImages, readImageWork } from './image.ts'
import { readSpeaking, type Speaking, speaking } from './speech.ts'

/** A prompt that is answered with an image or with audio. */
type ContentAsk = ServedAsk & {
  readonly counted: CountedPrompt
  readonly userText: string
  readonly work: ImageWork | Speaking
  /** A few words accompany an image, unless only an image is requested. */
  readonly words: string
  readonly finish: string
}

/**
 * generateContent of the models that draw or speak. It ignores what does not apply to them: tools, schemas, thinking.
 */
export function mediaContent(model: string, delivery: Delivery): Endpoint<Fields, ContentAsk, GoogleError> {
  return {
    dialect: dialectOn(delivery === 'plain' ? 'generateContent' : 'streamGenerateContent'),
    capabilities: ['images', 'speech'],
    open: ({ text }) => ({ model, body: readMessage(text, generateContentRequest) }),
    read: (body, known, { text }) => readAsk(body, text, known),
    make: (ask) => makeContent(ask, delivery),
  }
}

function readAsk(body: Fields, bodyText: string, model: SandboxModel): ContentAsk {
  const contents = itemsIn(body.contents).map(fieldsIn)
  const config = fieldsIn(body.generationConfig)
  checkContents(contents, false)
  checkSystemInstruction(body.systemInstruction)
  const isSpoken = isSoldFor(model, 'speech')
  const modalities = readModalities(config, model, isSpoken ? [['AUDIO']] : [['TEXT', 'IMAGE'], ['IMAGE']])
  if (isSpoken && isGiven(body.systemInstruction)) {
    throw invalid('Developer instruction is not enabled for this model')
  }
  if (typeof config.candidateCount === 'number' && config.candidateCount !== 1) {
    throw invalid('Multiple candidates is not enabled for this model')
  }
  const counted = countPrompt(body, contents, bodyText)
  const { steering, userText } = readTexts(body, contents)
  return {
    model,
    steering,
    counted,
    userText,
    work: isSpoken ? readSpeaking(config, userText) : readImageWork(config, model.model, counted),
    words: modalities.includes('TEXT') ? 'Here is the image you asked for.' : '',
    finish: steering.has('refusal') ? (isSpoken ? 'OTHER' : 'IMAGE_SAFETY') : (steering.text('finish') ?? 'STOP'),
  }
}

/** The first combination is the default of image models. Speech models require an explicit one. */
function readModalities(config: Fields, { model }: SandboxModel, combinations: readonly string[][]): readonly string[] {
  const asked = itemsIn(config.responseModalities).map(String)
  const usual = asked.length === 0 && combinations.length > 1 ? combinations[0] : undefined
  const fitting = combinations.find((known) => known.toSorted().join() === asked.toSorted().join()) ?? usual
  if (fitting !== undefined) return fitting
  const list = combinations.map((known) => `* ${known.join(', ')}\n`).join('')
  throw invalid(
    `The requested combination of response modalities (${asked.join(', ') || 'TEXT'}) is not supported by the model. models/${model} accepts the following combination of response modalities:\n${list}`,
  )
}

function makeContent(ask: ContentAsk, delivery: Delivery): Answer {
  const units = countUnits(ask)
  const answers = [...answersOf(ask, units, delivery !== 'plain')]
  if (delivery === 'plain') {
    return { units, headers: { 'content-type': jsonType }, body: { kind: 'whole', text: writeJson(answers[0]) } }
  }
  const isArray = delivery === 'array'
  const texts = answers.map((answer) => JSON.stringify(answer))
  return {
    units,
    headers: { 'content-type': isArray ? jsonType : 'text/event-stream' },
    body: {
      kind: 'pieces',
      texts: isArray ? asArray(texts) : texts,
      encode: isArray ? ({ text }: Frame) => Buffer.from(text) : eventEncoder(ask.steering, '\r\n'),
      error: () => JSON.stringify(errorBody(errorForStatus(500))),
    },
  }
}

function* asArray(texts: readonly string[]): Generator<string, void> {
  for (const [index, text] of texts.entries()) yield `${index === 0 ? '[' : '\n,\r\n'}${text}`
  yield '\n]'
}

/** Images in the prompt are ordinary input tokens; generated media have a count of their own. */
function countUnits({ steering, counted, work, words, finish }: ContentAsk): Units {
  const input = counted.tokens
  if (steering.has('blocked')) return reportedUnits(steering, 'input', { input })
  const output = splitTokens(words).length
  const made = isWithheld(finish) ? 0 : work.tokens
  return work.kind === 'image'
    ? reportedUnits(steering, 'imageOutput', { input, output, imageOutput: made })
    : reportedUnits(steering, 'audioOutput', { input, output, audioOutput: made })
}

/** One answer, or for a stream several that each hold what is new. The last one has the finish reason. */
function* answersOf(ask: ContentAsk, units: Units, isStreaming: boolean): Generator<unknown, void> {
  const { model, steering, work, words, finish, counted } = ask
  const told = {
    ...(!steering.has('nousage') && { usageMetadata: writeUsage(counted, work, units) }),
    modelVersion: model.model,
    responseId: seededId('', counted.prompt.hash),
  }
  if (steering.has('blocked')) {
    yield { promptFeedback: writeBlock(), ...told }
    return
  }
  if (isWithheld(finish)) {
    yield { candidates: [{ ...writeFinish(finish), index: 0 }], ...told }
    return
  }
  const media = work.kind === 'image' ? drawImages(work) : speaking(work, isStreaming)
  const parts = [...(words === '' ? [] : [{ text: words }]), ...media.map((inlineData) => ({ inlineData }))]
  if (!isStreaming) {
    yield { candidates: [{ content: writeContent(parts), finishReason: finish, index: 0 }], ...told }
    return
  }
  for (const [index, part] of parts.entries()) {
    const end = index === parts.length - 1 ? { finishReason: finish } : {}
    yield { candidates: [{ content: writeContent([part]), ...end, index: 0 }], ...told }
  }
}

function writeUsage(counted: CountedPrompt, work: ImageWork | Speaking, units: Units): unknown {
  const { input, output, imageOutput = 0, audioOutput = 0 } = units
  const media = imageOutput + audioOutput
  const modality = work.kind === 'image' ? 'IMAGE' : 'AUDIO'
  return {
    promptTokenCount: input,
    ...(output + media !== 0 && { candidatesTokenCount: output + media }),
    totalTokenCount: input + output + media,
    ...(input > 0 && { promptTokensDetails: writeModalities(counted) }),
    ...(media !== 0 && { candidatesTokensDetails: [{ modality, tokenCount: media }] }),
  }
}
