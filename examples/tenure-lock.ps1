# Holds one lock of a tenure server from PowerShell: status, acquire, release, break.
# Not run by tenure's tests, which have no PowerShell.
#
#   $env:TENURE_SERVER = "https://locks.example.org:7070"; $env:TENURE_SERVER_TOKEN = "..."
#   ./tenure-lock.ps1 status memory
#   $grant = ./tenure-lock.ps1 acquire memory -Operation "consolidating" -Wait 5
#   ./tenure-lock.ps1 release memory -Grant $grant
#   ./tenure-lock.ps1 break memory -Reason "its machine is gone"
#
# acquire prints the grant, which proves that the lock is yours; keep it to yourself. The lease lasts 60 seconds:
# for longer work, ask /v1/locks/renew every 20 seconds. Exit codes are those of the command: 4 not held,
# 5 not allowed, 6 held by another, 8 lost, 1 anything else.
param(
    [Parameter(Mandatory)] [ValidateSet("status", "acquire", "release", "break")] [string] $Verb,
    [Parameter(Mandatory)] [string] $Name,
    [string] $Operation,
    [double] $Wait = 5,
    [string] $Grant,
    [string] $Reason
)
$ErrorActionPreference = "Stop"
$server = if ($env:TENURE_SERVER) { $env:TENURE_SERVER } else { "http://127.0.0.1:7070" }
$headers = @{ Authorization = "Bearer $env:TENURE_SERVER_TOKEN" }

function Send-Tenure($path, $body) {
    $json = $body | ConvertTo-Json -Depth 10
    Invoke-RestMethod "$server$path" -Method Post -Headers $headers -ContentType "application/json" -Body $json
}

function Get-Lock {
    Invoke-RestMethod "$server/v1/locks/show?resource=$([uri]::EscapeDataString($Name))" -Headers $headers
}

try {
    switch ($Verb) {
        "status" { Get-Lock | ConvertTo-Json -Depth 10 }
        "acquire" {
            $ask = @{ resources = @($Name); ttl_ms = 60000; wait_ms = [int]($Wait * 1000) }
            if ($Operation) { $ask.operation = $Operation }
            (Send-Tenure "/v1/locks/acquire" $ask).grant
        }
        "release" { Send-Tenure "/v1/locks/release" @{ grant = $Grant } | Out-Null }
        "break" {
            if (-not $Reason) { throw "break needs -Reason: it is kept in the events" }
            # The very hold that was seen, never its successor.
            foreach ($hold in (Get-Lock).holds) {
                Send-Tenure "/v1/locks/break" @{ resource = $hold.resource; token = $hold.token; reason = $Reason } |
                    Out-Null
            }
        }
    }
} catch {
    $problem = $null
    if ($_.ErrorDetails) { $problem = $_.ErrorDetails.Message | ConvertFrom-Json }
    if (-not $problem) { [Console]::Error.WriteLine("Error: $_"); exit 1 }
    [Console]::Error.WriteLine("Error: $($problem.detail)")
    if ($problem.hint) { [Console]::Error.WriteLine("Hint: $($problem.hint)") }
    $codes = @{
        NOT_HELD = 4; NOT_YOURS = 5; FORBIDDEN = 5; UNAUTHORIZED = 5; LOCKED = 6; TASK_LOCKED = 6
        SECTION_LOCKED = 6; DEADLOCK = 6; LEASE_LOST = 8; TOKEN_REFUSED = 8
    }
    exit $(if ($codes.ContainsKey($problem.code)) { $codes[$problem.code] } else { 1 })
}
