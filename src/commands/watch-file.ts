import { lstatSync, readlinkSync, watch, type FSWatcher } from 'node:fs'
import { basename, isAbsolute, join, resolve } from 'node:path'

const settleMs = 200
// As many symbolic links as Linux follows; the path of a file that could be read has fewer.
const linksMax = 40

type Watched = {
  readonly changed: () => void
  /** Called where a folder cannot be watched, so that changes in it are not seen. */
  readonly cannot: (folder: string, thrown: unknown) => void
}

/**
 * Watches the file's folder, because editors write a file in several steps and some replace it, and reports a change
 * once they are done. The file may be a symbolic link, and changes with every link on the way to it.
 */
export function watchFile(path: string, { changed, cannot }: Watched): void {
  const watchers: FSWatcher[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let places = placesOf(path)

  /** Watches anew also where the place is the same: a folder that was replaced is another one under its old name. */
  function follow(): void {
    for (const watcher of watchers.splice(0)) watcher.close()
    for (const folder of places.keys()) {
      try {
        const watcher = watch(folder, (_event, name) => {
          // A folder that is moved away, or removed, is reported by its own name.
          if (name !== null && (places.get(folder)?.has(name) === true || name === basename(folder))) settle()
        })
        watcher.unref()
        watchers.push(watcher)
      } catch (thrown) {
        cannot(folder, thrown)
      }
    }
  }

  function settle(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      // The links are followed again before the file is read, so that later changes are seen where they lead now.
      places = placesOf(path)
      follow()
      changed()
    }, settleMs)
  }

  follow()
}

/**
 * The names to watch, by their folders: that of the file, and that of every link on the way to it, folders included.
 */
function placesOf(path: string): Map<string, Set<string>> {
  const places = new Map<string, Set<string>>()
  const ahead = partsOf(resolve(path))
  let folder = '/'
  let links = 0
  for (let name = ahead.shift(); name !== undefined && links <= linksMax; name = ahead.shift()) {
    const at = join(folder, name)
    const found = lookAt(at)
    if (found === 'folder' && ahead.length > 0) {
      folder = at
      continue
    }
    places.set(folder, (places.get(folder) ?? new Set()).add(name))
    if (typeof found === 'string') break
    links++
    if (isAbsolute(found.leadsTo)) folder = '/'
    ahead.unshift(...partsOf(found.leadsTo))
  }
  return places
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}

function lookAt(path: string): 'folder' | 'anything else' | { readonly leadsTo: string } {
  try {
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) return { leadsTo: readlinkSync(path) }
    return stat.isDirectory() ? 'folder' : 'anything else'
  } catch {
    return 'anything else' // it does not exist, or may not be looked at
  }
}
