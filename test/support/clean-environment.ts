import { vendors } from '../../src/vendors/index.ts'

/**
 * Loaded before every test: a developer's own keys, database or settings must neither be spent nor decide a result.
 * What the tests start inherits the cleaned environment.
 */
const ours = ['PORT', 'HOST', 'ADMIN_PORT', 'SANDBOX_PORT', 'DATABASE_URL']
const ofVendors = [...vendors.values()].flatMap(({ environment }) => environment)

for (const name of [...ours, ...ofVendors]) delete process.env[name]
for (const name of Object.keys(process.env)) if (name.startsWith('TURNPIKE_')) delete process.env[name]
