import { expect, test } from 'bun:test'
import type { Asking, ToolContext } from '../tool-context.ts'
import { editImage } from './images.ts'

/** Edits with these arguments, and gives the form that the path would have read. */
async function sentBy(given: Record<string, unknown>): Promise<FormData> {
  let sent: FormData | undefined
  const context = {
    progress: { during: (_: string, work: () => Promise<unknown>) => work() },
    async ask(_: string, { body }: Asking) {
      sent = await new Response(body?.stream, { headers: { 'content-type': body?.contentType ?? '' } }).formData()
      return Response.json({ data: [] })
    },
    fetchFile: (url: string) => Promise.resolve(Buffer.from(`behind ${url}`)),
  } as unknown as ToolContext
  await editImage.call({ model: 'painter', prompt: 'Make it night.', ...given }, context)
  return sent ?? new FormData()
}

const textsOf = (form: FormData, field: string) =>
  Promise.all(form.getAll(field).map((value) => new Response(value).text()))

test('one image, several images and a mask are sent in the fields of the form', async () => {
  const [cat, dog, mask] = ['cat', 'dog', 'mask'].map((name) => `https://pictures.example/${name}.png`)
  const one = await sentBy({ images: [cat], n: 2 })
  expect([...one.keys()]).toEqual(['model', 'prompt', 'n', 'image'])
  expect(await textsOf(one, 'image')).toEqual([`behind ${cat}`])
  const several = await sentBy({ images: [cat, dog], mask })
  expect(await textsOf(several, 'image[]')).toEqual([`behind ${cat}`, `behind ${dog}`])
  expect(await textsOf(several, 'mask')).toEqual([`behind ${mask}`])
})
