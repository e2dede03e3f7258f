import { expect, test } from 'bun:test'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { failWith } from '../../test/support/thrown.ts'
import { syncFolder } from './sync-folder.ts'

test.each(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP'])(
  'the folder of a file system that syncs no folders (%s) can be used',
  (code) => expect(() => syncFolder(temporaryFolder('synced'), failWith(code))).not.toThrow(),
)

test.skipIf(process.platform !== 'linux')('a folder that the kernel itself cannot sync can be used', () => {
  expect(() => syncFolder('/proc')).not.toThrow()
})

test('any other failure to sync a folder is thrown', () => {
  expect(() => syncFolder(temporaryFolder('synced'), failWith('EIO'))).toThrow('EIO')
})
