import type { Buckets } from './buckets.ts'
import {
  attemptOutcomes,
  statusClasses,
  tokenKinds,
  type LabelsOf,
  type metrics,
  type MetricKey,
  type TokenKind,
} from './names.ts'
import type { Standing } from './standing.ts'
import type { ModelTally, Tally } from './tally.ts'

/** Values of one metric, each with its labels. A histogram is kept in milliseconds and shown in seconds. */
type Samples<K extends MetricKey> = Iterable<
  readonly [LabelsOf<K>, (typeof metrics)[K]['kind'] extends 'histogram' ? Buckets : number]
>

/** Where each metric is read from. */
export type Readers = { readonly [K in MetricKey]: () => Samples<K> }

export type Sources = {
  readonly tally: Tally
  readonly version: string
  readonly loopDelay: Buckets
  readonly standing: () => Standing
}

const nanoPerDollar = 1e9
const msPerSecond = 1000
const microsPerSecond = 1e6

export function makeReaders({ tally, version, loopDelay, standing }: Sources): Readers {
  const models = (read: (model: ModelTally) => number) => () => ofModels(tally, read)
  const now = (read: (standing: Standing) => number) => () => [[{}, read(standing())] as const]
  /** If the database did not answer, the metric is left out rather than shown as 0. */
  const stored = (read: (stored: NonNullable<Standing['stored']>) => number) => () => {
    const { stored: known } = standing()
    return known === undefined ? [] : [[{}, read(known)] as const]
  }
  return {
    responses: () => byRoute(tally.responses),
    refused: () => byRoute(tally.refusals),
    requests: () => requests(tally),
    durations: () => durations(tally),
    requestSeconds: models(({ ms }) => ms / msPerSecond),
    tokens: () => tokens(tally),
    characters: models(({ characters }) => characters),
    images: models(({ images }) => images),
    videoSeconds: models(({ videoSeconds }) => videoSeconds),
    webSearches: models(({ webSearches }) => webSearches),
    charged: models(({ chargedNano }) => chargedNano / nanoPerDollar),
    vendorCost: models(({ costNano }) => costNano / nanoPerDollar),
    attempts: () => attempts(tally),
    openHolds: now(({ openHolds }) => openHolds),
    unposted: now(({ unposted }) => unposted),
    openTasks: () =>
      Object.entries(standing().stored?.tasks ?? {}).map(([state, count]) => [{ state }, count] as const),
    tasksInDoubt: stored(({ tasksInDoubt }) => tasksInDoubt),
    pollLag: stored(({ pollLagMs }) => pollLagMs / msPerSecond),
    tasksEnded: () => tasksEnded(tally),
    unknownStates: () => standing().unknownStates.map(({ channel, count }) => [{ channel }, count] as const),
    deliveries: () => [...tally.deliveries].map(([outcome, count]) => [{ outcome }, count] as const),
    waitingWebhooks: stored(({ webhooks }) => webhooks),
    webhookLag: stored(({ webhookLagMs }) => webhookLagMs / msPerSecond),
    reloads: () => Object.entries(tally.reloads).map(([outcome, count]) => [{ outcome }, count] as const),
    models: now(({ models: count }) => count),
    databaseUp: now(({ stored: known }) => (known === undefined ? 0 : 1)),
    draining: now(({ isDraining }) => (isDraining ? 1 : 0)),
    build: () => [[{ version, mode: standing().mode }, 1]],
    loopDelay: () => [[{}, loopDelay]],
    heap: () => [[{}, process.memoryUsage().heapUsed]],
    memory: () => [[{}, process.memoryUsage.rss()]],
    cpu: () => [[{}, cpuSeconds()]],
    started: () => [[{}, performance.timeOrigin / msPerSecond]],
  }
}

function* byRoute(routes: Tally['responses']) {
  for (const [route, statuses] of routes) {
    for (const [status, count] of statuses) yield [{ route, status: String(status) }, count] as const
  }
}

function* requests(tally: Tally) {
  for (const [labels, { byClass }] of eachModel(tally)) {
    for (const [i, status] of statusClasses.entries()) {
      const count = byClass[i] ?? 0
      if (count > 0) yield [{ ...labels, status }, count] as const
    }
  }
}

function* durations({ capabilities }: Tally) {
  for (const [capability, { whole, streamed }] of capabilities) {
    if (whole.count > 0) yield [{ capability, streamed: 'false' }, whole] as const
    if (streamed.count > 0) yield [{ capability, streamed: 'true' }, streamed] as const
  }
}

function* tokens(tally: Tally) {
  for (const [labels, model] of eachModel(tally)) {
    for (const [name, kind] of Object.entries(tokenKinds)) {
      const count = model.tokens[name as TokenKind] // `Object.entries` forgets that these are the keys of `tokenKinds`
      if (count > 0) yield [{ ...labels, kind }, count] as const
    }
  }
}

/** Leaves out models whose value is 0. */
function* ofModels(tally: Tally, read: (model: ModelTally) => number) {
  for (const [labels, model] of eachModel(tally)) {
    const value = read(model)
    if (value > 0) yield [labels, value] as const
  }
}

function* eachModel({ capabilities }: Tally) {
  for (const [capability, { models }] of capabilities) {
    for (const [model, counted] of models) yield [{ capability, model }, counted] as const
  }
}

function* attempts({ channels }: Tally) {
  for (const [channel, { vendor, outcomes }] of channels) {
    for (const outcome of attemptOutcomes) {
      if (outcomes[outcome] > 0) yield [{ channel, vendor, outcome }, outcomes[outcome]] as const
    }
  }
}

function* tasksEnded(tally: Tally) {
  for (const [model, states] of tally.tasksEnded) {
    for (const [state, count] of states) yield [{ model, state }, count] as const
  }
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / microsPerSecond
}
