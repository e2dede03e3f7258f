import { z } from 'zod'
import { inputsMax } from '../../wire/openai/embeddings-input.ts'
import { embeddingsRequest, embeddingsResult } from '../../wire/openai/embeddings-schema.ts'
import { contentTypes } from '../../wire/openai/speech.ts'
import { speechEvent, speechRequest } from '../../wire/openai/speech-schema.ts'
import type { OperationDocs } from './operations.ts'
import { pythonClient, typescriptClient } from './samples.ts'

const embed = { model: 'text-embedding-3-small', input: ['The sea is calm tonight.', 'The tide is full.'] }
const say = { model: 'qwen3-tts-flash', input: 'The sea is calm tonight.', voice: 'Cherry' }

/** What the contract says about embeddings and speech. */
export const textMediaOperations = {
  createEmbedding: {
    summary: 'Create embeddings',
    description: [
      `Turns texts into vectors. A list may hold up to ${inputsMax.toLocaleString('en')} texts: it is split into batches ` +
        'that the model accepts, and the vectors are returned in the order of the inputs. If one batch keeps failing, nothing is ' +
        'charged.',
      '`base64` (little-endian float32) works on every model. Token lists as input work where the vendor accepts them.',
      '`dimensions` that the model does not offer are a 400 that lists those it does. `text-embedding-004` is an alias of ' +
        'its successor `gemini-embedding-001` with 768 dimensions. Shortened vectors are normalised to length one.',
    ].join('\n\n'),
    once: true,
    request: { schema: embeddingsRequest, example: embed },
    answer: { description: 'The vectors.', schema: embeddingsResult, metered: true },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: {
      curl: `curl "$TURNPIKE_URL/v1/embeddings" \\
  -H "Authorization: Bearer $TURNPIKE_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(embed)}'`,
      typescript: `${typescriptClient}
const { data } = await client.embeddings.create({
  model: '${embed.model}',
  input: ['${embed.input[0]}', '${embed.input[1]}'],
})
console.log(data[0]?.embedding.length)`,
      python: `${pythonClient}
made = client.embeddings.create(model="${embed.model}", input=${JSON.stringify(embed.input)})
print(len(made.data[0].embedding))`,
    },
  },
  createSpeech: {
    summary: 'Create speech',
    description: [
      'Turns text into speech. Audio is streamed as it is generated; a wav of up to three minutes is sent when it is ' +
        'complete, because its header contains its length. If generation breaks off, the connection is closed without a ' +
        'proper end of the response.',
      'Without a voice, or with a voice name of the common protocol that the model lacks, its default voice is used; any ' +
        'other unknown voice is a 400. Every model offers `mp3` and `wav`; `qwen3-tts-instruct-flash` always returns ' +
        '`wav`. `speed` has an effect where the vendor supports it. Texts longer than the model accepts, up to 65,536 ' +
        'characters, are split at sentence ends and the audio is joined.',
      'Models sold by the character are charged by the Unicode code points of `input`, as soon as audio is sent; of a ' +
        'split text, the parts that were begun.',
      "An unknown model is a 400 `endpoint_model_mismatch` here, and a 402 has only `error.message`. A vendor's refusal " +
        'is passed on with its own message.',
    ].join('\n\n'),
    once: true,
    request: { schema: speechRequest, example: say },
    answer: {
      description: 'The audio; with `stream_format` `sse`, a series of events.',
      schema: z.string().meta({ format: 'binary' }),
      types: Object.values(contentTypes),
      event: speechEvent,
      metered: true,
    },
    errors: [400, 401, 402, 413, 415, 429, 502, 503, 504],
    samples: {
      curl: `curl "$TURNPIKE_URL/v1/audio/speech" \\
  -H "Authorization: Bearer $TURNPIKE_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(say)}' -o sea.mp3`,
      typescript: `import { writeFile } from 'node:fs/promises'
${typescriptClient}
const sound = await client.audio.speech.create({
  model: '${say.model}',
  input: '${say.input}',
  voice: '${say.voice}',
})
await writeFile('sea.mp3', Buffer.from(await sound.arrayBuffer()))`,
      python: `${pythonClient}
with client.audio.speech.with_streaming_response.create(
    model="${say.model}",
    input="${say.input}",
    voice="${say.voice}",
) as sound:
    sound.stream_to_file("sea.mp3")`,
    },
  },
} as const satisfies Record<string, OperationDocs>
