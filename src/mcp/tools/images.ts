import type { ContentBlock } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { readBase64Head } from '../../base/image-head.ts'
import type { Asking, RouteName, ToolContext } from '../tool-context.ts'
import { costField, costOf, fileLink, modelField, spending, tool, type Shown } from '../tool.ts'
import { formOf } from './form.ts'

const shown = z
  .enum(['image', 'link'])
  .default('image')
  .meta({ description: '`image` returns the image itself and a link to it; `link` returns only the link.' })
const count = z.int().min(1).max(10).optional().meta({ description: 'How many; each is charged.' })
const size = z
  .string()
  .optional()
  .meta({ description: 'Width x height, or `auto`.', examples: ['1024x1024'] })
const quality = z.string().optional().meta({ description: 'Such as low, medium or high, on models that have it.' })
const outputFormat = z.enum(['png', 'jpeg', 'webp']).optional()
const background = z.enum(['auto', 'transparent', 'opaque']).optional()

const output = z.looseObject({
  model: z.string(),
  images: z.array(
    z.looseObject({
      url: z.string().optional().meta({ description: 'A link that works for at most 24 hours.' }),
      media_type: z.string().optional(),
      width: z.int().optional(),
      height: z.int().optional(),
      revised_prompt: z.string().optional(),
    }),
  ),
  usage: z.looseObject({}).optional(),
  cost: costField,
})

export const generateImage = tool({
  name: 'generate_image',
  title: 'Generate an image',
  description:
    'Generates images from a text, or from a text and reference images. Returns them with links to the files. Takes up to two minutes. Costs money by image or by tokens.',
  annotations: spending,
  input: z.strictObject({
    model: modelField('images', 'gpt-image-2'),
    prompt: z
      .string()
      .min(1)
      .meta({ description: 'What the image shows, and its style.', examples: ['A lighthouse at dusk, ink.'] }),
    n: count,
    size,
    quality,
    background,
    output_format: outputFormat,
    image: z
      .array(z.string().min(1))
      .optional()
      .meta({ description: 'Reference images, as https or data: URLs, on models that take them.' }),
    negative_prompt: z.string().optional().meta({ description: 'What to avoid.' }),
    seed: z.int().optional(),
    watermark: z.boolean().optional(),
    prompt_extend: z.boolean().optional().meta({ description: 'Whether the vendor may enrich the prompt.' }),
    show: shown,
  }),
  output,
  routes: ['POST /v1/images/generations'],
  call({ show, ...fields }, context) {
    const json = { ...fields, response_format: show === 'link' ? 'url' : 'b64_json' }
    return makeImages(context, 'POST /v1/images/generations', { json }, fields.model)
  },
})

export const editImage = tool({
  name: 'edit_image',
  title: 'Edit an image',
  description:
    'Edits one or more images by a description; with a mask, only its transparent area. Returns the results with links to the files. Costs money by image or by tokens.',
  annotations: spending,
  input: z.strictObject({
    model: modelField('edits', 'gpt-image-2'),
    prompt: z
      .string()
      .min(1)
      .meta({ description: 'What to change.', examples: ['Make it night.'] }),
    images: z.array(z.string().min(1)).min(1).max(16).meta({
      description: 'The images: https URLs (including links returned by other tools) or data: URLs. PNG, JPEG or WebP.',
    }),
    mask: z.string().min(1).optional().meta({ description: 'A PNG of the same size, given in the same way.' }),
    n: count,
    size,
    quality,
    background,
    output_format: outputFormat,
    input_fidelity: z.enum(['high', 'low']).optional(),
  }),
  output,
  routes: ['POST /v1/images/edits'],
  call({ images, mask, ...fields }, context) {
    const files = [
      ...images.map((source) => ({ field: images.length === 1 ? 'image' : 'image[]', source })),
      ...(mask === undefined ? [] : [{ field: 'mask', source: mask }]),
    ]
    const body = formOf(fields, files, (url) => context.fetchFile(url))
    return makeImages(context, 'POST /v1/images/edits', { body }, fields.model)
  },
})

type Made = {
  readonly data: readonly { readonly url?: string; readonly b64_json?: string; readonly revised_prompt?: string }[]
  readonly usage?: object
}

function makeImages(context: ToolContext, route: RouteName, asking: Asking, model: string): Promise<Shown> {
  return context.progress.during('The image is being generated', async () => {
    const response = await context.ask(route, asking)
    const { data, usage } = (await response.json()) as Made
    const images = await Promise.all(data.map((made) => showImage(context, made)))
    return {
      blocks: images.flatMap(({ blocks }) => blocks),
      structured: { model, images: images.map(({ about }) => about), usage, cost: costOf(response) },
    }
  })
}

async function showImage(
  context: ToolContext,
  { url, b64_json: base64, revised_prompt: revised }: Made['data'][number],
) {
  if (base64 === undefined) {
    const blocks = url === undefined ? [] : [fileLink(url, 'image', 'image/*')]
    return { blocks, about: { url, revised_prompt: revised } }
  }
  const head = readBase64Head(base64)
  const { mediaType, ...sides } = head === undefined || head === 'broken' ? { mediaType: 'image/png' } : head
  const kept = await context.keep(Buffer.from(base64, 'base64'), mediaType)
  const blocks: ContentBlock[] = [{ type: 'image', data: base64, mimeType: mediaType }]
  if (kept !== undefined) blocks.push(fileLink(kept, `image.${mediaType.slice('image/'.length)}`, mediaType))
  return { blocks, about: { url: kept, media_type: mediaType, ...sides, revised_prompt: revised } }
}
