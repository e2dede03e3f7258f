import { claimSingleNode } from '../../src/store/single-node.ts'

/** A gateway as far as its lock goes: `folder`. Holds it until killed. */
const [folder = ''] = process.argv.slice(2)
try {
  claimSingleNode(folder)
  process.stdout.write('held\n')
  setInterval(() => {}, 1_000)
} catch (error) {
  process.stderr.write(String(error))
  process.exit(1)
}
