import { badRequest } from '../base/errors.ts'
import { unixSeconds, unixSecondsOrNull } from '../base/moment.ts'
import { formatDollars } from '../base/money.ts'
import type { Usage } from '../capabilities/usage.ts'
import { type GroupBy, groupings } from '../store/groupings.ts'
import type { Store } from '../store/open.ts'
import { hourMs, type SummedColumn, summedColumns, unitColumns } from '../store/rollups.ts'
import { type UsageFilter, sumUsage, type UsageSum } from '../store/usage.ts'
import { checkPeriod, type Page, pageOf } from './query.ts'

/** The names under which counts are shown, in sums and in single records alike. */
const shownAs = {
  input: 'input_tokens',
  cached_input: 'cached_input_tokens',
  cache_write: 'cache_write_tokens',
  cache_write_hour: 'cache_write_hour_tokens',
  image_input: 'image_input_tokens',
  audio_input: 'audio_input_tokens',
  output: 'output_tokens',
  reasoning: 'reasoning_tokens',
  image_output: 'image_output_tokens',
  audio_output: 'audio_output_tokens',
  character: 'characters',
  video_token: 'video_tokens',
  web_search: 'web_searches',
  images: 'images',
  video_seconds: 'video_seconds',
} as const satisfies Record<SummedColumn, string>

/** Which vendor answered is the operator's business, so customers group by everything else. */
export const customerGroupings = groupings.filter((by) => by !== 'vendor')

export type UsageQuery = {
  readonly group_by?: GroupBy | undefined
  readonly limit: number
  readonly after?: string | undefined
}

/** `from` and `to` are the bounds of the sums, widened to whole hours; null where a bound was not given. */
export type UsageReport = Page<Record<string, string | number | null>> & {
  readonly from: number | null
  readonly to: number | null
}

/** A customer's sums take milliseconds, and all reports share two connections: no customer may occupy one for long. */
const customerStatementMs = 2_000

/** Operators also see what vendors charge; customers do not. */
type Reader = 'operator' | 'customer'

/** Sums of usage. */
export async function reportUsage(
  store: Store,
  asked: UsageFilter,
  query: UsageQuery,
  reader: Reader,
): Promise<UsageReport> {
  checkPeriod(asked)
  const filter = wholeHours(asked)
  const { group_by: by, limit } = query
  const after = query.after === undefined ? undefined : readCursor(query.after, by)
  const rows = await sumUsage(store, filter, by ?? 'nothing', {
    limit: limit + 1,
    after,
    statementMsMax: reader === 'customer' ? customerStatementMs : undefined,
  })
  const page = pageOf(
    rows,
    limit,
    (row) => show(row, by, reader),
    ({ group }) => shownGroup(group),
  )
  return { ...page, from: unixSecondsOrNull(filter.from), to: unixSecondsOrNull(filter.to) }
}

function show({ group, requests, cost, vendorCost, counts }: UsageSum, by: GroupBy | undefined, reader: Reader) {
  return {
    ...(by !== undefined && { [by]: shownGroup(group) }),
    requests,
    cost: formatDollars(cost),
    ...(reader === 'operator' && { vendor_cost: formatDollars(vendorCost) }),
    ...Object.fromEntries(summedColumns.map((column) => [shownAs[column], counts[column]])),
  }
}

/** Hours and days are shown by the unix time of their start. */
function shownGroup(group: string | number | null): string | number | null {
  return typeof group === 'number' ? unixSeconds(group) : group
}

function readCursor(after: string, by: GroupBy | undefined): string | number {
  if (by === undefined) throw badRequest("'after' needs 'group_by': a single total has no further pages.", 'after')
  if (by !== 'hour' && by !== 'day') return after
  if (!/^\d{1,11}$/.test(after)) throw badRequest("'after' must be the 'next' of the previous page.", 'after')
  return Number(after) * 1000
}

/** Sums are stored by the hour, so a period that begins or ends within an hour is widened to include it. */
function wholeHours(filter: UsageFilter): UsageFilter {
  const { from, to } = filter
  return { ...filter, from: from && Math.floor(from / hourMs) * hourMs, to: to && Math.ceil(to / hourMs) * hourMs }
}

/** The usage of one request, under the same names as in the sums. */
export function showUsage(usage: Usage): Record<string, string | number | boolean> {
  const shown: Record<string, string | number | boolean> = {}
  for (const unit of Object.keys(unitColumns) as (keyof typeof unitColumns)[]) {
    const count = usage[unit]
    // Vendors report zeros for units that were not used, and these are left out. Input and output are always shown.
    if (count !== undefined && (count > 0 || unit === 'input' || unit === 'output'))
      shown[shownAs[unitColumns[unit]]] = count
  }
  const { images, video } = usage
  if (images !== undefined) {
    shown['images'] = images.count
    if (images.size !== undefined) shown['image_size'] = images.size
    if (images.quality !== undefined) shown['image_quality'] = images.quality
  }
  if (video !== undefined) {
    shown['video_seconds'] = video.seconds
    shown['video_resolution'] = video.resolution
    if (video.sound !== undefined) shown['video_sound'] = video.sound
  }
  return shown
}
