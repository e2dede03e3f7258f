/** Whether a text is an absolute http or https address. */
export function isHttpUrl(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '')
}

/** The port of an http or https address, also where it is left out. */
export function portOf({ protocol, port }: Pick<URL, 'protocol' | 'port'>): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}
