const usual = '/v1'

/** The vendors whose official SDK has another base address than the usual, under the vendor's own prefix. */
const bases: Readonly<Record<string, string>> = {
  anthropic: '',
  dashscope: '',
  google: '',
  ark: '/api/v3',
  elevenlabs: '',
  cohere: '',
  kling: '',
  runway: '',
  vidu: '',
  pixverse: '',
}

export function baseOf(vendor: string): string {
  return bases[vendor] ?? usual
}
