"""What nginx asks about its callers, and where they leave requests to be answered later. Callers reach it through the gateway's own address.

POST …/later/v1/chat/completions   202 with an id and where to ask (Location)
GET  …/later/<id>                  202 while it waits or runs (Retry-After), else the server's own answer
DELETE …/later/<id>                called off, where it has not begun
"""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.gateway.manage import GatewayRefused, call_off, gateway_for, leave_request
from jobs.gateway.models import Gateway, LaterRequest

ASK_AGAIN_SECONDS = 2
STATUS = {"queue": 429, "body": 413, "path": 404}


@login_not_required
@require_safe
def gateway_check(request: HttpRequest, name: str) -> HttpResponse:
    return HttpResponse(status=204 if caller_of(request, name) else 401)


@login_not_required
@csrf_exempt
@require_POST
def gateway_leave(request: HttpRequest, name: str, path: str) -> HttpResponse:
    gateway = caller_of(request, name)
    if gateway is None:
        return refused(401, "invalid_api_key", "This token opens nothing here.")
    try:
        left = leave_request(gateway=gateway, path=path, body=request.body, now=timezone.now())
    except GatewayRefused as refusal:
        answer = refused(STATUS[refusal.field], refusal.field, str(refusal.text))
        if refusal.field == "queue":
            answer["Retry-After"] = str(gateway.retry_after_seconds)
        return answer
    answer = JsonResponse(shown(left), status=202)
    answer["Location"] = f"/{gateway.name}/later/{left.id}"
    return answer


@login_not_required
@csrf_exempt
@require_http_methods(["GET", "HEAD", "DELETE"])
def gateway_later(request: HttpRequest, name: str, number: uuid.UUID) -> HttpResponse:
    gateway = caller_of(request, name)
    if gateway is None:
        return refused(401, "invalid_api_key", "This token opens nothing here.")
    left = LaterRequest.objects.filter(gateway=gateway, pk=number).first()
    if left is None:
        return refused(404, "not_found", "No such request; answers are kept for a day.")
    if request.method == "DELETE":
        off = call_off(request=left, now=timezone.now())
        return HttpResponse(status=204) if off else refused(409, "begun", "It has begun, or has ended.")
    return answer_of(left)


def answer_of(left: LaterRequest) -> HttpResponse:
    if left.state in {"queued", "running"}:
        waiting = JsonResponse(shown(left), status=202)
        waiting["Retry-After"] = str(ASK_AGAIN_SECONDS)
        return waiting
    if left.state == "cancelled":
        return refused(410, "cancelled", "It was called off.")
    if left.state == "failed" and not left.answer:
        return refused(left.status or 502, "failed", "Nobody answered it in time, and it is not sent again.")
    # What a server sent is never a page of this address.
    kind = "application/json" if left.content_type.startswith("application/json") else "text/plain; charset=utf-8"
    return HttpResponse(
        bytes(left.answer), status=left.status, content_type=kind, headers={"X-Content-Type-Options": "nosniff"}
    )


def shown(left: LaterRequest) -> dict[str, str]:
    return {"id": str(left.id), "status": left.state}


def caller_of(request: HttpRequest, name: str) -> Gateway | None:
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    return gateway_for(name=name, secret=secret.strip()) if kind == "Bearer" else None


def refused(status: int, code: str, text: str) -> JsonResponse:
    return JsonResponse({"error": {"message": text, "type": code, "code": code}}, status=status)
