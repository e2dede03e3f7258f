import { pause } from '../../base/pause.ts'
import { faultFor } from '../faults.ts'
import { readForm } from '../files/form.ts'
import { readImageHeader } from '../files/image-header.ts'
import type { Call } from '../protocol.ts'
import type { CodedRefusal } from '../refusal.ts'
import { hashText } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { errorForCode, invalid, writeAnswer } from './errors.ts'
import { pixverseDialect } from './dialect.ts'

const moderationCode = 500052
const bytesMax = 20 * 1024 * 1024
const sideMax = 10_000

/** Accepts an image as a file or by its link, in which steering words apply. Costs nothing and is not on the bill. */
export async function answerUpload(call: Call): Promise<Response> {
  try {
    const refusals = pixverseDialect.refusalsFor(pixverseDialect.readKey(call.request))
    const { label, link } = await readImage(call)
    const steering = readSteering(link)
    await pause(steering.number('delay') ?? 0, call.request.signal)
    const fault = await faultFor(steering, refusals)
    return fault ?? Response.json(writeAnswer({ img_id: writeImageId(label), img_url: link }))
  } catch (error) {
    if (!pixverseDialect.isRefusal(error)) throw error
    return error.code === moderationCode ? writeModerated(error) : pixverseDialect.writeRefusal(call, error)
  }
}

/** Only this refusal has an error status, and its fields are in lower case. */
function writeModerated({ code, message }: CodedRefusal<number>): Response {
  return Response.json({ err_code: code, err_msg: message, resp: '' }, { status: 500 })
}

type Image = { readonly label: string; readonly link: string }

async function readImage(call: Call): Promise<Image> {
  const form = await readForm(call)
  if (!form) throw invalid('the body is no form', 400013)
  const [file, link] = [form.get('image'), form.get('image_url')]
  if (file instanceof File) return readFile(new Uint8Array(await file.arrayBuffer()))
  if (typeof link !== 'string' || link === '') throw invalid('image and image_url are empty', 400011)
  if (!/^https?:\/\/[^/]/.test(link)) throw invalid('image_url')
  return { label: link, link }
}

function readFile(bytes: Uint8Array): Image {
  const header = readImageHeader(bytes)
  if (!header) throw errorForCode('500032')
  const { width, height, format } = header
  if (bytes.length > bytesMax || Math.max(width, height) > sideMax) throw errorForCode('500030')
  return { label: `${format} ${width}x${height} ${bytes.length}`, link: '' }
}

const checkDigits = 1_000

/** Images are not remembered. An id proves itself valid: its last digits are a checksum of the others. */
function writeImageId(label: string): number {
  const seed = hashText(label)
  return seed * checkDigits + checkOf(seed)
}

export function isImageId(value: unknown): boolean {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) return false
  return value % checkDigits === checkOf(Math.floor(value / checkDigits))
}

function checkOf(seed: number): number {
  return hashText(`picture ${seed}`) % checkDigits
}
