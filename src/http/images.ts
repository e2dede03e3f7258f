import type { Artifacts } from '../artifacts/artifacts.ts'
import type { IsOwnLink } from '../base/untrusted-url.ts'
import { bearerOf } from '../edge/credential.ts'
import { readForm } from '../edge/read-form.ts'
import { editsJob, imagesJob } from '../flow/media/images.ts'
import { editsCodec, formOf, imagesCodec } from '../wire/images.ts'
import { writeError as writeNativeError } from '../wire/native/errors.ts'
import { writeError } from '../wire/openai/errors.ts'
import { readJson, type Endpoint } from './serve.ts'

type ImageParts = { readonly artifacts: Artifacts; readonly isOwnLink: IsOwnLink }

/** `POST /v1/images/generations`, in two protocols: once the form of a body is known, its errors have that shape. */
export function imagesEndpoint({ artifacts, isOwnLink }: ImageParts): Endpoint {
  const codec: typeof imagesCodec = {
    ...imagesCodec,
    readAsk: (asked, lookUp) => imagesCodec.readAsk(asked, lookUp, isOwnLink),
  }
  return {
    job: imagesJob({ artifacts }, codec),
    credentialOf: bearerOf,
    async readBody(visit, parts) {
      const read = await readJson(visit, parts)
      const form = formOf(read.body)
      if (form !== undefined) visit.speak(form === 'native' ? writeNativeError : writeError)
      return read
    },
  }
}

/** `POST /v1/images/edits`: a form with files. */
export function editsEndpoint({ artifacts }: Pick<ImageParts, 'artifacts'>): Endpoint {
  return {
    job: editsJob({ artifacts }, editsCodec),
    credentialOf: bearerOf,
    readBody: ({ request }, { bodyBytesMax }) => readForm(request, bodyBytesMax),
  }
}
