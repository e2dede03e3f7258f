/**
 * Google refuses a whole request if one function's name begins with a digit or a dash, which the other vendors take and
 * some tools of MCP servers have. Such a name is sent with an underscore before it. One that looks like that already
 * gets another, so that every name can be read back. There is room for it: Google takes twice as long names as OpenAI.
 */
export function writeName(name: string): string {
  return /^_*[\d-]/.test(name) ? `_${name}` : name
}

export function readName(name: string): string {
  return /^_+[\d-]/.test(name) ? name.slice(1) : name
}
