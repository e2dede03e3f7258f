import { expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { Kysely, sql } from 'kysely'
import { freePort } from '../../test/support/free-port.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { isAway } from './faults.ts'
import { openPostgres } from './postgres.ts'

const message = (type: string, body: string): Buffer => {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, Buffer.from(body)])
}
const loggedIn = Buffer.concat([message('R', '\0\0\0\0'), message('Z', 'I')])
const refused = (code: string, why: string) => message('E', `SFATAL\0C${code}\0M${why}\0\0`)

// As PgBouncer does, which has no session of the database yet when a client logs in.
test.each([
  ['08P01', 'server login has been failing', true],
  ['28P01', 'password authentication failed', false],
])('why a pooler refuses the first statement is said: %s', async (code, why, waits) => {
  const pooler = createServer((client) => {
    client.on('error', () => {})
    client.once('data', () => {
      client.once('data', () => client.end(refused(code, why)))
      client.write(loggedIn)
    })
  })
  const port = await freePort()
  await new Promise<void>((resolve) => pooler.listen(port, '127.0.0.1', resolve))
  const db = new Kysely({ dialect: openPostgres(`postgres://turnpike@127.0.0.1:${port}/d`, 'requests') })
  try {
    const thrown = await thrownBy(sql`select 1`.execute(db))
    expect(String(thrown)).toContain(why)
    expect(isAway(thrown)).toBe(waits)
  } finally {
    await db.destroy()
    pooler.close()
  }
})
