import { createHmac } from 'node:crypto'
import { GatewayError } from '../../base/errors.ts'
import { unixSeconds } from '../../base/moment.ts'
import type { CallContext } from '../vendor.ts'

const validSeconds = 1_800
// The vendor's clock may be a little behind ours.
const earlierSeconds = 5

/** A token that is valid for half an hour, signed with the secret half of the credential. */
export function authorizationFor({ credential, now }: Pick<CallContext, 'credential' | 'now'>): string {
  const [accessKey = '', ...rest] = credential.split(':')
  const secret = rest.join(':')
  if (now === undefined) throw new GatewayError('bug', 'a token for Kling needs the time')
  const seconds = unixSeconds(now)
  const head = encode({ alg: 'HS256', typ: 'JWT' })
  const body = encode({ iss: accessKey, exp: seconds + validSeconds, nbf: seconds - earlierSeconds })
  const signature = createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url')
  return `Bearer ${head}.${body}.${signature}`
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
