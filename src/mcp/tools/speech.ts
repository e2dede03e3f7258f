import { z } from 'zod'
import { readPieces } from '../read-pieces.ts'
import type { ToolContext } from '../tool-context.ts'
import { costField, costOf, CutShort, fileLink, modelField, spending, tool } from '../tool.ts'

const path = 'POST /v1/audio/speech'

export const speak = tool({
  name: 'speak',
  title: 'Read a text aloud',
  description:
    'Turns a text into speech and returns the audio with a link to the file. Costs money by character or by tokens.',
  annotations: spending,
  input: z.strictObject({
    model: modelField('speech', 'gpt-4o-mini-tts'),
    input: z
      .string()
      .min(1)
      .meta({ description: 'What to say.', examples: ['Good morning.'] }),
    voice: z.string().optional().meta({ description: 'One of the model’s voices (see turnpike://models/{id}).' }),
    response_format: z
      .string()
      .optional()
      .meta({ description: 'mp3 or wav; some models have others.', examples: ['mp3'] }),
    instructions: z.string().optional().meta({ description: 'Tone, pace and mood, on models that take them.' }),
    speed: z.number().optional(),
  }),
  output: z.looseObject({
    model: z.string(),
    media_type: z.string(),
    bytes: z.int(),
    url: z.string().optional().meta({ description: 'A link that works for at most 24 hours.' }),
    cost: costField,
  }),
  routes: [path],
  call(fields, context) {
    return context.progress.during('The text is being spoken', async () => {
      const response = await context.ask(path, { json: fields })
      const { audio, broken } = await readAudio(response, context)
      const mediaType = response.headers.get('content-type')?.split(';')[0] ?? 'audio/mpeg'
      const url = await context.keep(audio, mediaType)
      const blocks = [
        { type: 'audio' as const, data: Buffer.from(audio).toString('base64'), mimeType: mediaType },
        ...(url === undefined ? [] : [fileLink(url, 'speech', mediaType)]),
      ]
      if (broken !== undefined) throw new CutShort(blocks, broken)
      return {
        blocks,
        structured: { model: fields.model, media_type: mediaType, bytes: audio.length, url, cost: costOf(response) },
      }
    })
  },
})

/** The audio as far as it came, which is charged, and if it broke off, the body of the error that says why. */
async function readAudio(
  { body }: Response,
  context: ToolContext,
): Promise<{ audio: Uint8Array; broken?: string | undefined }> {
  const pieces: Uint8Array[] = []
  const broken =
    body === null
      ? undefined
      : await readPieces(body, context.signal, (piece) => pieces.push(piece)).then(
          () => undefined,
          (thrown: unknown) => context.refused(thrown).written.body,
        )
  return { audio: Buffer.concat(pieces), broken }
}
