/**
 * Money is integer nano-dollars, prices are integer pico-dollars per unit: cached tokens cost fractions of a nano.
 * Both are branded bigints, so that no float and no unit mistake can enter a money function unseen.
 */
export type Nano = bigint & { readonly __unit: 'nano-dollar' }
export type Pico = bigint & { readonly __unit: 'pico-dollar' }

const nanoPerDollar = 1_000_000_000n
const picoPerNano = 1_000n
const nanoDecimals = 9

export const zeroNano = 0n as Nano

export function nano(amount: bigint): Nano {
  return amount as Nano
}

export function pico(amount: bigint): Pico {
  return amount as Pico
}

/** The one rounding of a request's cost: half up, never earlier. */
export function toNano(amount: Pico): Nano {
  return divideHalfUp(amount, picoPerNano) as Nano
}

/** Reads dollars with up to nine decimals, as operators write them: `12`, `0.000000001`, `-3.5`. */
export function parseDollars(text: string): Nano | undefined {
  const decimal = parseDecimal(text)
  if (decimal === undefined || decimal.scale > nanoDecimals) return undefined
  return (decimal.digits * 10n ** BigInt(nanoDecimals - decimal.scale)) as Nano
}

const trailingZeros = /0+$/

/** Decimal dollars without trailing zeros, the form of every amount in JSON and on the command line. */
export function formatDollars(amount: Nano): string {
  const sign = amount < 0n ? '-' : ''
  const digits = (amount < 0n ? 0n - amount : amount).toString().padStart(nanoDecimals + 1, '0')
  const fraction = digits.slice(-nanoDecimals).replace(trailingZeros, '')
  return `${sign}${digits.slice(0, -nanoDecimals)}${fraction === '' ? '' : `.${fraction}`}`
}

/** An amount as people write it, `$3.5` or `-$0.5`; also of one that already has its form for JSON. */
export function showDollars(amount: Nano | string): string {
  const text = typeof amount === 'string' ? amount : formatDollars(amount)
  return text.startsWith('-') ? `-$${text.slice(1)}` : `$${text}`
}

/** A currency as ISO 4217 writes it. */
export const currencyPattern = /^[A-Z]{3}$/

/** An exact decimal: `digits / 10^scale`. Prices, exchange rates and markups are multiplied as such, not as floats. */
export type Decimal = { readonly digits: bigint; readonly scale: number }

const decimalPattern = /^-?\d{1,18}(?:\.\d{1,18})?$/

export function parseDecimal(text: string): Decimal | undefined {
  if (!decimalPattern.test(text)) return undefined
  const [whole = '', fraction = ''] = text.split('.')
  return { digits: BigInt(whole + fraction), scale: fraction.length }
}

export function multiply(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale }
}

/** Turns dollars per `units` into pico-dollars per unit, rounded half up: the only place where a price is rounded. */
export function picoPerUnit(dollars: Decimal, units: bigint): Pico {
  return divideHalfUp(dollars.digits * nanoPerDollar * picoPerNano, 10n ** BigInt(dollars.scale) * units) as Pico
}

function divideHalfUp(numerator: bigint, denominator: bigint): bigint {
  const floor = numerator / denominator
  const rest = numerator % denominator
  if (numerator < 0n) return -rest * 2n > denominator ? floor - 1n : floor
  return rest * 2n >= denominator ? floor + 1n : floor
}
