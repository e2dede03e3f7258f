import { z } from 'zod'

// The rules for these fields depend on the model: see `video.ts`. Null means absent.
const fields = z.looseObject({}).nullish()

/** The body of `POST /v1/videos/generations`. */
export const videoRequest = z.looseObject({
  model: z.string().min(1),
  duration: z.int().nullish(),
  resolution: z.string().nullish(),
  aspect_ratio: z.string().nullish(),
  input: fields,
  parameters: fields,
  webhook_url: z.string().nullish(),
  wait: z.boolean().nullish(),
  timeout: z.int().nullish(),
})
