import { ownIn } from '../fields.ts'
import { videoLink } from '../video/results.ts'
import type { VideoTask } from '../video/tasks.ts'
import { operationName, type VeoAsk } from './create.ts'

/** The numbers of the gRPC codes that a video can end with. */
const codes: Readonly<Record<string, number>> = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  INTERNAL: 13,
  UNAVAILABLE: 14,
}

/** What GET reports about an operation. Fields that are false may be left out, so a queued operation is only a name. */
export function writeOperation(task: VideoTask<VeoAsk>): object {
  const { id, model, state, failure } = task
  const name = operationName(model.model, id)
  if (state === 'queued') return { name }
  if (state === 'running') return { name, done: false, metadata: { '@type': `${types}PredictLongRunningMetadata` } }
  if (failure) {
    const code = /^\d{1,2}$/.test(failure.code) ? Number(failure.code) : (ownIn(codes, failure.code) ?? 3)
    return { name, done: true, error: { code, message: failure.message } }
  }
  const response = { '@type': `${types}PredictLongRunningResponse`, generateVideoResponse: writeSamples(task) }
  return { name, done: true, response }
}

const types = 'type.googleapis.com/google.ai.generativelanguage.v1beta.'

function writeSamples(task: VideoTask<VeoAsk>): object {
  const { origin, id, ask, steering } = task
  if (steering.has('blocked')) {
    const reason =
      'We encountered an issue with the audio for your prompt, which is either due to safety filters or processing. You have not been charged for this attempt.'
    return { raiMediaFilteredCount: ask.wish.samples, raiMediaFilteredReasons: [reason] }
  }
  if (steering.has('no-video')) return {}
  const samples = Array.from({ length: ask.wish.samples }, (_, index) => ({
    video: { uri: `${origin}${ask.root}/files/${id}-${index}:download?alt=media` },
  }))
  return { generatedSamples: samples }
}

/** Redirects to the bytes, at a place that needs no key and must not be sent one. */
export function redirectToFile(task: VideoTask<VeoAsk>): Response {
  return new Response(null, { status: 302, headers: { location: videoLink(task) } })
}
