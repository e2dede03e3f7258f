import { GatewayError } from '../../src/base/errors.ts'
import type { VideoRequest } from '../../src/capabilities/video.ts'
import { buildCatalogue, loadFamilies } from '../../src/catalogue/load.ts'
import { traitsOf } from '../../src/flow/traits.ts'
import { videoCodec } from '../../src/wire/native/video.ts'

export const catalogue = buildCatalogue({ families: loadFamilies(), sandbox: true, at: Date.now() })

export type Body = Record<string, unknown>

/** Reads a body with the codec, against the built-in catalogue. */
export function askFor(model: string, body: object, query: Readonly<Record<string, string>> = {}): VideoRequest {
  const asked = {
    // As it would come over the wire.
    body: JSON.parse(JSON.stringify({ model, ...body })),
    files: [],
    bodyBytes: 0,
    header: () => null,
    query: (name: string) => query[name] ?? null,
  }
  return videoCodec.readAsk(asked, (id) => {
    const known = catalogue.models.get(id)
    if (known === undefined) throw new GatewayError('unknown-model', id)
    return traitsOf(known, id)
  })
}

/** The field and the code of a refusal. */
export function refusalOf(model: string, body: object, query?: Readonly<Record<string, string>>): string {
  try {
    askFor(model, body, query)
  } catch (thrown) {
    if (!(thrown instanceof GatewayError) || thrown.kind !== 'bad-request') throw thrown
    return `${thrown.details.param} ${thrown.details.code}`
  }
  return 'accepted'
}

export const prompt = { prompt: 'a fox runs' }
export const image = 'https://example.com/a.png'
export const clip = 'https://example.com/a.mp4'
export const tune = 'https://example.com/a.mp3'
export const media = (...items: readonly (readonly [type: string, url?: string])[]) => ({
  ...prompt,
  media: items.map(([type, url = image]) => ({ type, url })),
})
