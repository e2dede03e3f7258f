import { drawImage } from '../files/image.ts'
import type { Route } from '../protocol.ts'
import { hashText, seeded } from '../seeded.ts'
import { linkSeconds, refuseLink, signLink } from '../signed-links.ts'
import type { Colour } from './h264.ts'
import { type Clip, writeMp4 } from './mp4.ts'
import type { VideoTask } from './tasks.ts'

/** A colour for each seed, far enough from grey to be visible. */
function colourOf(seed: number): Colour {
  const random = seeded(seed)
  const level = (): number => (2 + Math.floor(random() * 7)) * (random() < 0.5 ? -1 : 1)
  return [level(), level(), level()]
}

export function videoLink(task: VideoTask<unknown>): string {
  const { width, height, frames, sound } = task.clip
  return resultLink(task, `${width}x${height}_${frames}${sound ? '_sound' : ''}.mp4`)
}

export function frameLink(task: VideoTask<unknown>): string {
  return resultLink(task, `${task.clip.width}x${task.clip.height}.png`)
}

/** The name holds everything needed to make the file, so a link outlives its task and no file is stored. */
function resultLink({ origin, model, id, endedAt = 0, steering }: VideoTask<unknown>, name: string): string {
  const kept = steering.has('expired') ? -1 : linkSeconds
  return signLink(`${origin}/${model.vendor}/video-results/${id}_${name}`, Math.floor(endedAt / 1_000) + kept)
}

const pattern = /\/([^/]+)_(\d+)x(\d+)(?:_(\d+)(_sound)?)?\.(?:mp4|png)$/

export function resultRoute(vendor: string, now: () => number): Route {
  return {
    method: 'GET',
    path: `/${vendor}/video-results/*`,
    answer: ({ request, path }) => refuseLink(request.url, now()) ?? writeResult(path),
  }
}

function writeResult(path: string): Response {
  const [, id = '', width, height, frames, audio] = pattern.exec(path) ?? []
  const seed = hashText(id)
  const size = { width: Number(width), height: Number(height) }
  if (frames === undefined) {
    const image = new Uint8Array(drawImage({ ...size, format: 'png', seed }))
    return new Response(image, { headers: { 'content-type': 'image/png' } })
  }
  return answerVideo({ id, clip: { ...size, frames: Number(frames), sound: audio !== undefined } })
}

/** The video itself, for vendors that give no link to it. */
export function answerVideo({ id, clip: footage }: Pick<VideoTask<unknown>, 'id' | 'clip'>): Response {
  const clip: Clip = { ...footage, colour: colourOf(hashText(id)) }
  return new Response(writeMp4(clip), { headers: { 'content-type': 'video/mp4' } })
}
