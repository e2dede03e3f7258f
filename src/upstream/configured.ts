import type { ChannelEntry } from '../config/schema.ts'
import { vendors } from '../vendors/index.ts'
import { localCredential, type Channel } from './channels.ts'
import { faultOfKey } from './key-form.ts'
import { channelsOfVariables } from './vendor-variables.ts'

/** A channel that is not valid; `path` leads to the field in the operator's file. */
export class ChannelError extends Error {
  readonly path: readonly (string | number)[]

  constructor(path: readonly (string | number)[], message: string) {
    super(message)
    this.name = 'ChannelError'
    this.path = path
  }
}

/** The operator's channels, and one for every vendor whose usual variable is set and that the file does not name. */
export function configuredChannels(
  entries: readonly ChannelEntry[],
  variables: Readonly<Record<string, string | undefined>>,
): Channel[] {
  const written = entries.map(readEntry)
  const ids = new Set<string>()
  written.forEach(({ id }, index) => {
    if (ids.has(id)) throw new ChannelError(['channels', index, 'id'], `there are two channels "${id}"`)
    ids.add(id)
  })
  return [...written, ...channelsOfVariables(entries, variables)]
}

export function unknownVendor(id: string): string {
  return `unknown vendor "${id}"; there are: ${[...vendors.keys()].join(', ')}`
}

function readEntry(entry: ChannelEntry, index: number): Channel {
  const vendor = vendors.get(entry.vendor)
  if (vendor === undefined) throw new ChannelError(['channels', index, 'vendor'], unknownVendor(entry.vendor))
  const baseUrl = entry.baseUrl ?? vendor.baseUrl
  if (baseUrl === '') throw new ChannelError(['channels', index, 'baseUrl'], `vendor "${vendor.id}" needs a baseUrl`)
  const root = vendor.callRoots?.find((path) => baseUrl.endsWith(path))
  if (root !== undefined) {
    const message = `the base address of vendor "${vendor.id}" is written without ${root}, with which its calls begin`
    throw new ChannelError(['channels', index, 'baseUrl'], message)
  }
  const isLocal = vendor.local || vendor.environment.length === 0
  if (entry.keys.length === 0 && !isLocal)
    throw new ChannelError(['channels', index, 'keys'], 'at least one key is needed')
  for (const [place, key] of entry.keys.entries()) {
    const fault = faultOfKey(vendor, key)
    if (fault === undefined) continue
    throw new ChannelError(['channels', index, 'keys', place], `a key of vendor "${vendor.id}" is ${fault}`)
  }
  return {
    id: entry.id,
    vendor,
    baseUrl,
    credentials: entry.keys.length === 0 ? [localCredential] : entry.keys,
    weight: entry.weight,
    priority: entry.priority,
  }
}
