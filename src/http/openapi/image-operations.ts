import { z } from 'zod'
import { nativeImagesAnswer, nativeImagesRequest } from '../../wire/native/images-schema.ts'
import { editsForm, imageEvent, imagesAnswer, imagesRequest } from '../../wire/openai/images-schema.ts'
import type { OperationDocs } from './operations.ts'
import { pythonClient, typescriptClient } from './samples.ts'

const ask = { model: 'gpt-image-2', prompt: 'A lighthouse at dusk', size: '1536x1024' }

/** What the contract says about images. */
export const imageOperations = {
  createImage: {
    summary: 'Create an image',
    description: [
      'Generates images from a description and, on models that support it, from reference images. A body has one of ' +
        'two forms, and both work on every image model: the common form has a `prompt`, the native form an `input`. A ' +
        'body with both is read as the native form.',
      'An allowed size that the model lacks is replaced by the nearest one of the same orientation; `usage` reports the ' +
        'real size. Models with free sizes take multiples of 16, with sides of at most 3840 and a ratio of at most 3:1.',
      'With `stream`, the common form is answered with events; models that support previews send `partial_images` of ' +
        'them per image, and the last event has the usage.',
      'Errors of the native form are `{code, message, request_id}`; those of the common form are as everywhere. An error ' +
        'that occurs before the form is known (a bad key, a body that is not JSON) has both shapes at once. An unknown ' +
        'model is a 400 in the native form.',
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
      description: 'The images, in the form of the request. Links work for 24 hours.',
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
      "Edits images by a description, on models with the capability `edits`; other vendors' models edit through " +
        '`/v1/images/generations` with reference images. The body is a form with files.',
      'Files are checked before anything is sent to a vendor: a file that is not PNG, JPEG or WebP, or a mask that is not ' +
        'a PNG with transparency and the size of the first image, is refused and costs nothing.',
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
      description: 'The images.',
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
