import { z } from 'zod'
import { nativeImagesAnswer, nativeImagesRequest } from '../../wire/native/schema.ts'
import { editsForm, imageEvent, imagesAnswer, imagesRequest } from '../../wire/openai/images-schema.ts'
import type { OperationDocs } from './operations.ts'
import { pythonClient, typescriptClient } from './samples.ts'

const ask = { model: 'gpt-image-2', prompt: 'A lighthouse at dusk', size: '1536x1024' }

/** What the contract says about pictures. */
export const imageOperations = {
  createImage: {
    summary: 'Create an image',
    description: [
      'Makes pictures from a description, on models that work from pictures also from those. A body has one of two ' +
        'forms, and both work on every image model: the common form has a `prompt`, the native one an `input`. A body ' +
        'with both is the native form.',
      'An allowed size that the model does not have goes as the nearest that it has, the same way up; what was made is ' +
        'in `usage`. A model that takes any size takes multiples of 16, each side at most 3840, the long side at most ' +
        'three times the short one.',
      'With `stream`, the common form is answered with events, and models that can show pictures while they make them ' +
        'do so, `partial_images` of each; the last event has the usage.',
      'Errors of the native form are `{code, message, request_id}`, those of the common form as everywhere. While the ' +
        'form is not known (a bad key, a body that is no JSON) they are both at once. An unknown model is a 400 in the ' +
        'native form.',
    ].join('\n\n'),
    once: true,
    request: {
      schema: z.union([
        imagesRequest.meta({ title: 'common form' }),
        nativeImagesRequest.meta({ title: 'native form' }),
      ]),
      example: ask,
    },
    answer: {
      description: 'The pictures, in the form of the request. Links work for 24 hours.',
      schema: z.union([imagesAnswer.meta({ title: 'common form' }), nativeImagesAnswer.meta({ title: 'native form' })]),
      event: imageEvent,
      metered: true,
    },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: {
      curl: `curl "$TURNPIKE_URL/v1/images/generations" \\
  -H "Authorization: Bearer $TURNPIKE_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${ask.model}", "prompt": "${ask.prompt}", "size": "${ask.size}"}'`,
      typescript: `import { writeFileSync } from 'node:fs'
${typescriptClient}
const { data } = await client.images.generate({
  model: '${ask.model}',
  prompt: '${ask.prompt}',
  size: '${ask.size}',
})
writeFileSync('lighthouse.png', Buffer.from(data?.[0]?.b64_json ?? '', 'base64'))`,
      python: `${pythonClient}
import base64
made = client.images.generate(model="${ask.model}", prompt="${ask.prompt}", size="${ask.size}")
open("lighthouse.png", "wb").write(base64.b64decode(made.data[0].b64_json))`,
    },
  },
  createImageEdit: {
    summary: 'Edit an image',
    description: [
      'Changes pictures by a description, on models with the capability `edits`; models of other vendors edit through ' +
        '`/v1/images/generations` with reference images. The body is a form with files.',
      'The heads of the files are read before anything is sent: what is not a PNG, JPEG or WebP file, or a mask that is ' +
        'not a PNG with transparency of the size of the first image, is refused and costs nothing.',
      'The `gpt-image` models take `auto`, `1024x1024`, `1024x1536` and `1536x1024` and always answer with `b64_json`; ' +
        'the older model takes `256x256`, `512x512` and `1024x1024`, and `url` too. A 402 has only `error.message`.',
    ].join('\n\n'),
    once: true,
    request: {
      type: 'multipart/form-data',
      schema: editsForm,
      example: { model: 'gpt-image-2', prompt: 'Add a sailing boat', image: '(the file)' },
    },
    answer: {
      description: 'The pictures.',
      schema: imagesAnswer,
      event: imageEvent,
      metered: true,
    },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: {
      curl: `curl "$TURNPIKE_URL/v1/images/edits" \\
  -H "Authorization: Bearer $TURNPIKE_KEY" \\
  -F model=gpt-image-2 \\
  -F prompt="Add a sailing boat" \\
  -F image=@lighthouse.png`,
      typescript: `import { createReadStream, writeFileSync } from 'node:fs'
${typescriptClient}
const { data } = await client.images.edit({
  model: 'gpt-image-2',
  prompt: 'Add a sailing boat',
  image: createReadStream('lighthouse.png'),
})
writeFileSync('boat.png', Buffer.from(data?.[0]?.b64_json ?? '', 'base64'))`,
      python: `${pythonClient}
import base64
made = client.images.edit(model="gpt-image-2", prompt="Add a sailing boat", image=open("lighthouse.png", "rb"))
open("boat.png", "wb").write(base64.b64decode(made.data[0].b64_json))`,
    },
  },
} as const satisfies Record<string, OperationDocs>
