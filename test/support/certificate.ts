/**
 * A server's identity for tests: good for the names guard.test and other.test until 2126, trusted by nobody but whoever is
 * given the certificate. The key protects nothing.
 */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBpDCCAUqgAwIBAgIUGLO2XHMugoE1j0mksizHpZL3m2UwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKZ3VhcmQudGVzdDAgFw0yNjExMTUwODAwNDhaGA8yMTI2MTAy
MjA4MDA0OFowFTETMBEGA1UEAwwKZ3VhcmQudGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABA3clo1lfuJiTHEC/R7bQg1Uk5+lOXKgLMibrqHq2zWdRl+rvEsH
iOnKrmaHOzyMdzKShmJQGUQ2mecxGiE379yjdjB0MB0GA1UdDgQWBBQmVDysSt1v
yCDkZCeSsEkuHcSmTDAfBgNVHSMEGDAWgBQmVDysSt1vyCDkZCeSsEkuHcSmTDAP
BgNVHRMBAf8EBTADAQH/MCEGA1UdEQQaMBiCCmd1YXJkLnRlc3SCCm90aGVyLnRl
c3QwCgYIKoZIzj0EAwIDSAAwRQIhAOz0atwaKzUWAz6lW7v0apGPji9nk2P7hqsV
mCtElJeMAiAwkIcd7sK1bmRD/24lxXLAVnGo2AtcFTGt5KsR4JhL2w==
-----END CERTIFICATE-----
`

export const certificateKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgqYCuxo4xDOFxJK+l
OIRyGThE6gljDvrIniNZCPDNXJKhRANCAAQN3JaNZX7iYkxxAv0e20INVJOfpTly
oCzIm66h6ts1nUZfq7xLB4jpyq5mhzs8jHcykoZiUBlENpnnMRohN+/c
-----END PRIVATE KEY-----
`
