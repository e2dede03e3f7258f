import type { Units } from '../bill.ts'
import { hashText } from '../seeded.ts'
import type { GeminiAsk } from './ask.ts'
import { type Candidate, type Composition, type FunctionCall, isWithheld } from './compose.ts'
import type { CountedPrompt } from './prompt.ts'

/** The complete answer of a call without streaming, as the vendor writes it. */
export function writeResponse(ask: GeminiAsk, composition: Composition): unknown {
  const { id, model, candidates, units } = composition
  return {
    ...(candidates.length > 0
      ? { candidates: candidates.map((candidate) => writeCandidate(ask, candidate)) }
      : { promptFeedback: writeBlock() }),
    // undefined leaves the key out
    usageMetadata: ask.steering.has('nousage') ? undefined : writeUsage(ask.counted, units),
    modelVersion: model,
    responseId: id,
  }
}

export function writeBlock(): unknown {
  return { blockReason: 'SAFETY', safetyRatings }
}

const safetyRatings = [{ category: 'HARM_CATEGORY_DANGEROUS_CONTENT', probability: 'HIGH', blocked: true }]

function writeCandidate(ask: GeminiAsk, candidate: Candidate): unknown {
  const { index, text, finish } = candidate
  return {
    ...(!isWithheld(finish) && { content: writeContent(writeParts(candidate)) }),
    ...writeFinish(finish),
    index,
    ...(ask.alternatives !== undefined && text.length > 0 && writeLogprobs(text, ask.alternatives)),
  }
}

/** A content without parts has no `parts` field, because protocol buffers do not write empty lists. */
export function writeContent(parts: readonly unknown[]): unknown {
  return { ...(parts.length > 0 && { parts }), role: 'model' }
}

export function writeFinish(finish: string): Record<string, unknown> {
  if (!isWithheld(finish)) return { finishReason: finish }
  const finishMessage = `The sandbox ended this answer with ${finish}.`
  return finish === 'SAFETY' ? { finishReason: finish, safetyRatings } : { finishReason: finish, finishMessage }
}

function writeParts({ thoughts, text, textSignature, calls }: Candidate): readonly unknown[] {
  const parts: unknown[] = []
  if (thoughts.length > 0) parts.push({ text: thoughts.join(''), thought: true })
  if (text.length > 0 || textSignature !== undefined) {
    parts.push({ text: text.join(''), thoughtSignature: textSignature })
  }
  return [...parts, ...calls.map(writeCall)]
}

export function writeCall({ name, args, signature }: FunctionCall): unknown {
  return { functionCall: { name, args }, thoughtSignature: signature }
}

/**
 * Zeros are left out as in protocol buffers, except for the prompt and the total. Cached tokens are part of the prompt.
 */
export function writeUsage(counted: CountedPrompt, units: Units): unknown {
  const { input, audioInput = 0, cachedInput, output, reasoning } = units
  const promptTokenCount = input + audioInput + cachedInput
  return {
    promptTokenCount,
    ...(output !== reasoning && { candidatesTokenCount: output - reasoning }),
    totalTokenCount: promptTokenCount + output,
    ...(cachedInput > 0 && { cachedContentTokenCount: cachedInput }),
    ...(promptTokenCount > 0 && { promptTokensDetails: writeModalities(counted) }),
    ...(cachedInput > 0 && { cacheTokensDetails: [{ modality: 'TEXT', tokenCount: cachedInput }] }),
    ...(reasoning > 0 && { thoughtsTokenCount: reasoning }),
  }
}

export function writeModalities({ tokens, media }: CountedPrompt): unknown {
  const mediaTotal = [...media.values()].reduce((sum, count) => sum + count, 0)
  const all = [['TEXT', tokens - mediaTotal] as const, ...media]
  return all.filter(([, count]) => count > 0).map(([modality, tokenCount]) => ({ modality, tokenCount }))
}

export function writeLogprobs(tokens: readonly string[], alternatives: number): Record<string, unknown> {
  const chosen = tokens.map((token) => likely(token, 0))
  const sum = chosen.reduce((total, { logProbability }) => total + logProbability, 0)
  return {
    avgLogprobs: sum / tokens.length,
    logprobsResult: {
      ...(alternatives > 0 && {
        topCandidates: tokens.map((token) => ({
          candidates: Array.from({ length: alternatives }, (_, rank) => likely(token, rank)),
        })),
      }),
      chosenCandidates: chosen,
    },
  }
}

function likely(token: string, rank: number): { token: string; tokenId: number; logProbability: number } {
  const hash = hashText(token)
  return {
    token: rank === 0 ? token : `${token}${rank}`,
    tokenId: (hash + rank) % 256_000,
    logProbability: -(hash % 1000) / 1000 - rank,
  }
}
