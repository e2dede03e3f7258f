/** Wan's models differ by version and by what they start from; the id tells both. */
export type Family = {
  readonly version: '2.5' | '2.6' | '2.7' | '3.0'
  /** From text, from an image, or from references; 3.0 takes any of them. */
  readonly kind: 't2v' | 'i2v' | 'r2v' | 'any'
  /** May be asked for a video without sound, at a lower price. */
  readonly isFlash: boolean
}

// A dated id or a preview has the rules of the plain id.
const pattern = /^wan(2\.[567])-(t2v|i2v|r2v)(-flash)?(?:-preview|-\d{4}-\d{2}-\d{2})?$/

const allInOne = /^wan3\.0-video(?:-prime)?$/

export function familyOf(model: string): Family | undefined {
  if (allInOne.test(model)) return { version: '3.0', kind: 'any', isFlash: true }
  const [, version, kind, flash] = pattern.exec(model) ?? []
  if (version !== '2.5' && version !== '2.6' && version !== '2.7') return undefined
  if (kind !== 't2v' && kind !== 'i2v' && kind !== 'r2v') return undefined
  return { version, kind, isFlash: flash !== undefined }
}

/** How the request gives the size: as width and height, or as a resolution. The other field is ignored. */
export function sizingOf({ version, kind }: Family): 'size' | 'resolution' {
  return version === '2.7' || version === '3.0' || kind === 'i2v' ? 'resolution' : 'size'
}

export type Tier = 480 | 720 | 1080

export function tiersOf({ version }: Family): readonly Tier[] {
  return version === '2.5' || version === '3.0' ? [480, 720, 1080] : [720, 1080]
}

const common = { '16:9': [1280, 720], '9:16': [720, 1280], '1:1': [960, 960] } as const
const commonHigh = { '16:9': [1920, 1080], '9:16': [1080, 1920], '1:1': [1440, 1440] } as const

type Sizes = Readonly<Record<string, readonly [width: number, height: number]>>

const low: Sizes = { '16:9': [832, 480], '9:16': [480, 832], '1:1': [624, 624] }
const until26: Readonly<Record<Tier, Sizes>> = {
  480: low,
  720: { ...common, '4:3': [1088, 832], '3:4': [832, 1088] },
  1080: { ...commonHigh, '4:3': [1632, 1248], '3:4': [1248, 1632] },
}
const since27: Readonly<Record<Tier, Sizes>> = {
  480: low,
  720: { ...common, '4:3': [1104, 832], '3:4': [832, 1104] },
  1080: { ...commonHigh, '4:3': [1648, 1248], '3:4': [1248, 1648] },
}

/** Only 3.0 has the 21:9 shape. The vendor does not document its pixels. */
const since30: Readonly<Record<Tier, Sizes>> = {
  480: { ...since27[480], '21:9': [1120, 480] },
  720: { ...since27[720], '21:9': [1680, 720] },
  1080: { ...since27[1080], '21:9': [2528, 1088] },
}

const tables = { '2.5': until26, '2.6': until26, '2.7': since27, '3.0': since30 } as const

export type Frame = { readonly tier: Tier; readonly ratio: string; readonly width: number; readonly height: number }

/** Everything the family can make. The first entry, the largest 16:9, is the default. */
export function framesOf(family: Family): readonly [Frame, ...Frame[]] {
  const table = tables[family.version]
  const frames = tiersOf(family)
    .toReversed()
    .flatMap((tier) =>
      Object.entries(table[tier]).map(([ratio, [width, height]]): Frame => ({ tier, ratio, width, height })),
    )
  const [first = usual, ...others] = frames
  return [first, ...others]
}

const usual: Frame = { tier: 1080, ratio: '16:9', width: 1920, height: 1080 }
