import { anthropic } from './anthropic/anthropic.ts'
import { cohere } from './cohere/cohere.ts'
import { compatible } from './compatible/compatible.ts'
import { anyDialect, dialects } from './compatible/dialects.ts'
import { elevenlabs } from './elevenlabs/elevenlabs.ts'
import { google } from './google/google.ts'
import { kling } from './kling/kling.ts'
import { pixverse } from './pixverse/pixverse.ts'
import { runway } from './runway/runway.ts'
import type { Vendor } from './vendor.ts'
import { vidu } from './vidu/vidu.ts'
import { voyage } from './voyage/voyage.ts'

/** Every vendor the gateway can speak to. A new one is one line here. */
const registered: readonly Vendor[] = [
  ...dialects.map(compatible),
  compatible(anyDialect),
  anthropic,
  google,
  kling,
  pixverse,
  runway,
  vidu,
  voyage,
  cohere,
  elevenlabs,
]

export const vendors: ReadonlyMap<string, Vendor> = new Map(registered.map((vendor) => [vendor.id, vendor]))
