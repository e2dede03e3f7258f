const usual = '/v1'

/** The vendors whose official SDK uses a base address other than `/v1`, under the vendor's own prefix. */
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
