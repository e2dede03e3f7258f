import { createHmac } from 'node:crypto'
import { type Fields, parseFields, textIn } from '../fields.ts'
import { errorForCode } from './errors.ts'

/** An account has an access key and a secret. Here the secret follows from the key: the key plus `-secret`. */
function secretOf(accessKey: string): string {
  return `${accessKey}-secret`
}

/** The caller's access key: the issuer of a token that is signed with the issuer's secret and valid now. */
export function readToken(authorization: string | null, nowMs: number): string {
  if (!authorization) throw errorForCode('1001')
  const [, token = ''] = /^Bearer +(\S+)$/i.exec(authorization) ?? []
  const [head = '', body = '', signature = '', ...more] = token.split('.')
  const { alg } = readPart(head)
  const { iss, exp, nbf } = readPart(body)
  const accessKey = textIn(iss)
  if (accessKey === 'bad-key') throw errorForCode('1000')
  const signed = createHmac('sha256', secretOf(accessKey)).update(`${head}.${body}`).digest('base64url')
  if (alg !== 'HS256' || accessKey === '' || more.length > 0 || signature !== signed) throw errorForCode('1002')
  if (typeof nbf === 'number' && nbf * 1_000 > nowMs) throw errorForCode('1003')
  if (typeof exp !== 'number' || exp * 1_000 <= nowMs) throw errorForCode('1004')
  return accessKey
}

function readPart(part: string): Fields {
  return parseFields(Buffer.from(part, 'base64url').toString()) ?? {}
}
