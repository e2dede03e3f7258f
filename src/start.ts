import { mainProgram } from './base/program-files.ts'

/** What `bin/turnpike` runs: the program, from its bundle or from its sources. */
await import(mainProgram())
