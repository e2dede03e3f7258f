import type { Mutant } from './mutant.ts'

/** Changes by which two readers of a connection could differ, or one client's answer would reach another's request. */
export const serverMutants: readonly Mutant[] = [
  {
    name: 'a length beside chunks is accepted',
    file: 'src/base/http/request-head.ts',
    from: "encoding.toLowerCase() !== 'chunked' || length !== null || isOld",
    to: "encoding.toLowerCase() !== 'chunked' || isOld",
    tests: ['src/base/http/request-head.test.ts'],
  },
  {
    name: 'a head is taken for the last one although what follows its length differs',
    file: 'src/base/http/head-memory.ts',
    from: 'if (!isSame(bytes, at, known, this.#lengthEnd, known.length)) return undefined',
    to: '',
    tests: ['src/base/http/head-memory.test.ts'],
  },
  {
    name: 'bytes behind a body are dropped',
    file: 'src/base/http/client-connection.ts',
    from: 'if (taken < bytes.length) this.#keep(partOf(bytes, taken))',
    to: '',
    tests: ['src/base/http/server-requests.test.ts', 'src/base/http/server.test.ts'],
  },
  {
    name: 'a connection is kept although the body of its request has not come',
    file: 'src/base/http/sender.ts',
    from: "head.keepsOpen && content.isOver && headers['connection'] !== 'close'",
    to: "head.keepsOpen && headers['connection'] !== 'close'",
    tests: ['src/base/http/server-requests.test.ts', 'src/base/http/server-answers.test.ts'],
  },
  {
    name: 'a stream that broke off ends as if it were whole',
    file: 'src/base/http/pouring.ts',
    from: 'this.#vessel.cut(this.#exchange, isNoticed)',
    to: 'this.#vessel.finish(this.#exchange, isNoticed)',
    tests: ['src/base/http/server-hang-ups.test.ts', 'src/base/http/server-answers.test.ts', 'src/base/tap.test.ts'],
  },
  {
    name: 'a client that leaves is not noticed',
    file: 'src/base/http/client-connection.ts',
    from: '      exchange.signal.abort()\n',
    to: '',
    tests: ['src/base/http/server-hang-ups.test.ts'],
  },
  {
    name: 'a header may begin another one',
    file: 'src/base/http/header-lines.ts',
    from: 'if (!isName(name) || !isValue(value))',
    to: 'if (false)',
    tests: ['src/base/http/reply.test.ts', 'src/base/http/server-answers.test.ts', 'src/upstream/http/request.test.ts'],
  },
]
